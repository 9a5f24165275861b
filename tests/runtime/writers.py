"""Handlers that write rows of the project's, for nodes that must not run twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import Group

from tests.runtime.graphs import Tally, add_line, new_builder, note

if TYPE_CHECKING:
    from stateknot import CompiledGraph, NodeContext


def rows() -> list[str]:
    """The names of the rows that handlers wrote, oldest first."""
    return list(Group.objects.order_by("id").values_list("name", flat=True))


class Writer:
    """Writes a row at each call, then gives what `then` gives."""

    def __init__(self, then: Any = None) -> None:
        self.then = then or (lambda _state, _ctx: {"log": ["pay"]})
        self.calls = 0

    def __call__(self, state: Tally, ctx: NodeContext) -> Any:
        self.calls += 1
        Group.objects.create(name=f"row {self.calls}")
        return self.then(state, ctx)


def paying(handler: Any, checkpointer: Any, **options: Any) -> CompiledGraph:
    """Node a, then `pay`, then z."""
    builder = add_line(new_builder(), "a").add_node("z", note("z"))
    builder.add_node("pay", handler, transactional=True, **options)
    builder.add_edge("a", "pay").add_edge("pay", "z")
    return builder.compile().with_checkpointer(checkpointer)


def fail(_state: Any, _ctx: Any) -> Any:
    raise ValueError("no")
