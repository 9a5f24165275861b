"""The how-to page of bounded loops runs as written, and says what it prints."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout

import pytest
from django.conf import settings
from django.core.management import call_command

from project.examples import review
from stateknot import MemoryCheckpointer, NodeContext
from stateknot.registry import get_graph

PAGE = settings.BASE_DIR / "docs" / "how-to" / "bounded-loops.md"


def blocks(language: str) -> list[str]:
    pattern = rf"^```{language}\n(.*?)^```$"
    return re.findall(pattern, PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_code_of_the_page_prints_what_it_says() -> None:
    (code,) = blocks("python")
    promised = re.findall(r"^print\(.*\)\s+# (.*)$", code, re.MULTILINE)
    out = io.StringIO()
    with redirect_stdout(out):
        exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102 - a page of ours
    assert out.getvalue().splitlines() == promised
    assert len(promised) == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("console", blocks("console"))
def test_command_of_the_page_prints_what_it_says(console: str) -> None:
    command, *promised = console.splitlines()
    _, python, manage, name, *arguments = shlex.split(command)
    assert (python, manage) == ("python", "manage.py")
    out = io.StringIO()
    call_command(name, *arguments, stdout=out)
    missing = [line for line in promised if line not in out.getvalue()]
    assert missing == []
    assert promised


def test_example_has_its_pinned_digest() -> None:
    """Scenarios 36 and 37: the frozen digest, eight nodes, six of them bound."""
    graph = get_graph(review.GRAPH_ID)
    assert graph.digest == review.DIGEST
    composition = review.compose()
    assert len(composition.graph.nodes) == 8
    assert len(composition.node_sources) == 6


def test_example_with_another_bound_is_another_revision() -> None:
    """Scenario 40: the bound is part of the digest."""
    assert review.build_graph(2).digest != review.DIGEST


def test_handler_of_the_example_is_told_its_iteration() -> None:
    seen: list[tuple[str, str, int]] = []

    def work(_counter: review.Counter, ctx: NodeContext) -> dict[str, int]:
        seen.append((ctx.source.call_site, ctx.source.node_id, ctx.source.iteration))
        return {"count": 1}

    graph = type(get_graph(review.GRAPH_ID)).from_definition(
        review.compose(),
        handlers={**review.HANDLERS, "work": work},
        state=review.Counter,
        update=review.Counter,
        reducer=review.add_counts,
    )
    assert graph.graph_id == "review.workflow"
    graph.with_checkpointer(MemoryCheckpointer()).run_with_thread("t", {"count": 0})
    assert seen == [("review", "work", 0), ("review", "work", 1)]
