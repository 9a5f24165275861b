"""Small blueprints for the tests of routing, supersteps and definitions."""

from __future__ import annotations

from typing import Any

from stateknot.kernel.blueprint import Blueprint
from stateknot.kernel.builder import BlueprintBuilder
from stateknot.kernel.outcome import Completed
from stateknot.kernel.records import Activation, JoinState
from stateknot.kernel.vocabulary import UNSET
from tests.kernel.state_samples import Tally

NO_JOINS = JoinState()


def handler(state: Tally, ctx: Any) -> None:
    """Never called: the kernel decides from outcomes."""


def builder_of(nodes: str, entry: str = "", **options: Any) -> BlueprintBuilder:
    """A builder with `nodes` (words), entered at the first unless `entry` says else."""
    options.setdefault("state", Tally)
    builder = BlueprintBuilder("sample.graph", **options)
    names = nodes.split()
    for name in names:
        builder.add_node(name, handler)
    for name in (entry or names[0]).split():
        builder.set_entry(name)
    return builder


def diamond(**options: Any) -> Blueprint:
    """a leads to b and c, which d waits for."""
    builder = builder_of("a b c d", **options)
    builder.add_edge("a", ["b", "c"]).add_waiting_edge(["b", "c"], "d")
    return builder.blueprint()


def act(text: str, arg: Any = UNSET) -> Activation:
    """An activation from `"node"` or `"node#id"`."""
    node, _, activation_id = text.partition("#")
    return Activation(node=node, arg=arg, id=activation_id)


def done(*items: Any) -> list[tuple[Activation, Completed]]:
    """Completed activations: words, or pairs of a word and an outcome."""
    pairs = [item if isinstance(item, tuple) else (item, Completed()) for item in items]
    return [(act(text), outcome) for text, outcome in pairs]


def gone(*targets: Any) -> Completed:
    """A finished activation that chose where to go."""
    return Completed(goto=targets)
