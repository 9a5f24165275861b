"""`manage.py stateknot_graphs`: which graphs there are, in which revisions.

Parses and prints; the facts come from `stateknot/selectors/revisions.py`.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError

from stateknot.management.commands._arguments import show_examples
from stateknot.management.exit_codes import EXPLAINED, refusing
from stateknot.management.output import to_json
from stateknot.registry import get_graph
from stateknot.selectors.revisions import list_registered, list_revisions

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from stateknot.kernel.blueprint import NodeSpec
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.selectors.revisions import RevisionFacts

EXAMPLE = "examples.review"
EXAMPLES = f"""\
examples:
  manage.py stateknot_graphs
  manage.py stateknot_graphs shop.order --json
  manage.py stateknot_graphs --example

{EXPLAINED}"""


class Command(BaseCommand):
    """List revisions, or what one graph binds."""

    help = "List graphs and their revisions, or what each node of one graph is run by."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        show_examples(parser, EXAMPLES)
        which = parser.add_mutually_exclusive_group()
        which.add_argument("graph", nargs="?", help="Show this graph, node by node.")
        which.add_argument(
            "--example",
            action="store_true",
            help=f"Show {EXAMPLE}, the bounded loop of the project's examples.",
        )
        parser.add_argument("--json", action="store_true", help="Print JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print."""
        graph_id = EXAMPLE if options["example"] else options["graph"]
        if graph_id is None:
            listed = self._revisions()
            told = "\n".join(map(_line, listed)) or "no graph is registered"
            found: Any = [asdict(facts) for facts in listed]
        else:
            with refusing():
                found = describe(get_graph(graph_id))
            told = _described(found)
        self.stdout.write(to_json(found) if options["json"] else told)

    def _revisions(self) -> list[RevisionFacts]:
        """What is known of every revision; without tables, what the code says."""
        try:
            return list_revisions()
        except DatabaseError as error:
            self.stderr.write(f"the database was not asked (migrate first?): {error}")
            return list_registered()


def describe(graph: CompiledGraph) -> dict[str, Any]:
    """What a graph binds: each node, where it comes from, the handler behind it."""
    nodes = [
        _node(graph.blueprint.nodes[name]) for name in sorted(graph.blueprint.nodes)
    ]
    return {
        "graph_id": graph.graph_id,
        "version": graph.version,
        "digest": graph.digest,
        "executable_nodes": len(nodes),
        "template_bindings": sum("call_site" in node for node in nodes),
        "nodes": nodes,
    }


def _node(spec: NodeSpec) -> dict[str, Any]:
    module = getattr(spec.handler, "__module__", type(spec.handler).__module__)
    name = getattr(spec.handler, "__qualname__", type(spec.handler).__qualname__)
    bound: dict[str, Any] = {"node_id": spec.id, "handler": f"{module}.{name}"}
    if spec.source is not None:
        bound["call_site"] = spec.source.call_site
        bound["template_node"] = spec.source.node_id
        bound["iteration"] = spec.source.iteration
    return bound


def _described(found: dict[str, Any]) -> str:
    return "\n".join(
        [
            f"{found['graph_id']} {found['version']}",
            found["digest"],
            f"{found['executable_nodes']} executable nodes, "
            f"{found['template_bindings']} template bindings",
            *(f"  {_bound(node)}" for node in found["nodes"]),
        ]
    )


def _bound(node: dict[str, Any]) -> str:
    where = ""
    if "call_site" in node:
        place = f"{node['call_site']}/{node['template_node']}"
        where = f"  {place}, iteration {node['iteration']}"
    return f"{node['node_id']}{where}  {node['handler']}"


def _line(facts: RevisionFacts) -> str:
    state = facts.state or "not seen by the database"
    code = "" if facts.is_registered else ", no code here"
    runs = ", ".join(f"{count} {status}" for status, count in facts.runs.items())
    return (
        f"{facts.graph_id} {facts.version}  {facts.digest}  {facts.nodes} nodes  "
        f"{state}{code}{'  runs: ' if runs else ''}{runs}"
    )
