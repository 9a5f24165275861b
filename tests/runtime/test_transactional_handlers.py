"""What a transactional node's handler may not do, and what it cannot break.

`test_transactional.py` has what it guarantees.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import IntegrityError, transaction

from stateknot import START, NodeContext, RetryPolicy, shared_subgraph
from stateknot.errors import GraphError, NodeFailedError, NodeTimeoutError
from stateknot.storage import DjangoCheckpointer
from tests.runtime.drives import tried
from tests.runtime.graphs import PATIENCE, Counted, Tally, add_line, new_builder, note
from tests.runtime.writers import Writer, fail, paying, rows

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.only_on("postgres")
def test_heartbeat_goes_on_while_the_handler_runs() -> None:
    """The run's row is not locked by a handler that says that it is alive."""
    renewed = threading.Event()

    class Watched(DjangoCheckpointer):
        def renew(self, fence: Any) -> None:
            super().renew(fence)
            if is_inside.is_set():
                renewed.set()

        @property
        def heartbeat_seconds(self) -> float:
            return 0.02

    def beat(_state: Tally, ctx: NodeContext) -> Any:
        ctx.heartbeat()
        is_inside.set()
        assert renewed.wait(PATIENCE)
        return {"log": ["pay"]}

    is_inside = threading.Event()
    graph = paying(Writer(beat), Watched())
    assert graph.run_with_thread("t", {}).state.log == ["a", "pay", "z"]


def test_late_handler_is_undone(checkpointer: Any) -> None:
    """It is not given up before it returns: the transaction is its own."""

    def late(_state: Tally, ctx: NodeContext) -> Any:
        pause = threading.Event()
        while not ctx.is_cancelled():
            pause.wait(0.01)
        return {"log": ["pay"]}

    graph = paying(Writer(late), checkpointer, timeout=0.05)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, NodeTimeoutError)
    assert rows() == []


def test_hook_behind_the_commit_does_not_fail_the_node(
    checkpointer: Any, caplog: Any
) -> None:
    """See Note [Behind the commit]: everything stands, so nothing runs again."""

    def hooked(_state: Tally, _ctx: NodeContext) -> Any:
        transaction.on_commit(lambda: 1 / 0)
        return {"log": ["pay"]}

    writer = Writer(hooked)
    graph = paying(writer, checkpointer)
    assert graph.run_with_thread("t", {}).state.log == ["a", "pay", "z"]
    assert (rows(), writer.calls) == (["row 1"], 1)
    assert "ZeroDivisionError" in caplog.text


def test_broken_transaction_fails_the_node() -> None:
    """A database error that the handler swallows does not store half of it."""

    def swallow(_state: Tally, _ctx: NodeContext) -> Any:
        with suppress(IntegrityError), transaction.atomic(savepoint=False):
            Group.objects.create(name="row 1")
        return {"log": ["pay"]}

    graph = paying(Writer(swallow), DjangoCheckpointer())
    with pytest.raises(NodeFailedError):
        graph.run_with_thread("t", {})
    assert rows() == []


def test_graph_inside_a_transactional_node_is_refused(checkpointer: Any) -> None:
    child = add_line(new_builder("tests.child"), "x").compile()
    graph = paying(lambda state, _ctx: child.run(state), checkpointer)
    with pytest.raises(NodeFailedError, match="ordinary node"):
        graph.run_with_thread("t", {})


async def wait_and_pay(_state: Tally) -> None:
    """An async handler."""


@pytest.mark.parametrize(
    ("handler", "options", "told"),
    [
        (wait_and_pay, {"transactional": True}, "async"),
        (note("x"), {"transactional": True, "at_most_once": True}, "keep trans"),
        (
            shared_subgraph(add_line(new_builder("tests.child"), "x").compile()),
            {"transactional": True},
            "runs a graph",
        ),
        (note("x"), {"at_most_once": True, "retry": RetryPolicy()}, "retry policy"),
        (note("x"), {"at_most_once": True, "on_error": fail}, "error handler"),
    ],
)
def test_what_does_not_go_together_is_refused(
    handler: Any, options: Any, told: str
) -> None:
    builder = new_builder().add_edge(START, "pay").add_node("pay", handler, **options)
    with pytest.raises(GraphError, match=told):
        builder.compile()


def test_kind_of_a_node_is_no_part_of_its_revision() -> None:
    """As a retry policy is none: it says how a node is run, not what the graph is."""
    plain = add_line(new_builder(), "pay").compile()
    builder = new_builder().add_edge(START, "pay")
    marked = builder.add_node("pay", Counted(note("pay")), transactional=True).compile()
    assert plain.digest == marked.digest


def test_commit_that_is_refused_fails_the_node(checkpointer: Any) -> None:
    """A reference is checked at the commit; what was told until then is not lost."""

    def refer(_state: Tally, ctx: NodeContext) -> Any:
        ctx.emit("referred", ctx.attempt)
        Permission.objects.create(name="x", codename="x", content_type_id=999_999)
        return {"log": ["pay"]}

    graph = paying(Writer(refer), checkpointer)
    with pytest.raises(NodeFailedError) as failed:
        graph.run_with_thread("t", {})
    assert isinstance(failed.value.__cause__, IntegrityError)
    assert rows() == []
    assert tried(checkpointer)[1:] == [("pay", 1, "failed")]
    run = checkpointer.find_thread_run("t")
    assert checkpointer.list_results(run) == []
    told = [e for row in checkpointer.list_journal(run.id) for e in row.events]
    assert [e.kind for e in told].count("custom") == 1
