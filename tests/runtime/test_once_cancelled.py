"""Nodes that must not run twice in a run that is cancelled while they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Group

from stateknot import RunStatus
from stateknot.errors import RunCancelledError
from stateknot.storage import DjangoCheckpointer
from tests.runtime.drives import tried
from tests.runtime.graphs import Tally, add_fan, compiled, new_builder
from tests.runtime.test_cancel import Asking, Gate, run_of, started
from tests.runtime.writers import rows

if TYPE_CHECKING:
    from stateknot import NodeContext


@pytest.fixture(autouse=True)
def short_lease(settings: Any) -> None:
    """Let the heartbeat come after a third of a second."""
    settings.STATEKNOT = {"lease_seconds": 1.0}


def cancelled(gate: Gate, checkpointer: Any, *, opens: bool, **kind: bool) -> Any:
    """A run that is cancelled while its node `pay` is at the gate."""
    builder = add_fan(new_builder(), {}).add_node("pay", gate, **kind)
    graph = compiled(builder.set_entry("pay"), checkpointer)
    with started(graph, gate) as running:
        graph.cancel("t")
        if opens:
            gate.let_go.set()
        with pytest.raises(RunCancelledError):
            running.result()
    assert run_of(graph).status is RunStatus.CANCELLED
    return graph


def test_at_most_once_node_that_stopped_early_is_lost(checkpointer: Any) -> None:
    """Nothing is left running in a run that ended."""
    cancelled(Asking(), checkpointer, opens=False, at_most_once=True)
    assert tried(checkpointer) == [("pay", 1, "lost")]


def test_at_most_once_node_that_finished_is_kept(checkpointer: Any) -> None:
    cancelled(Gate(), checkpointer, opens=True, at_most_once=True)
    assert tried(checkpointer) == [("pay", 1, "succeeded")]


@pytest.mark.only_on("postgres")
@pytest.mark.django_db(transaction=True)
def test_transactional_node_that_stopped_early_is_undone() -> None:
    """Elsewhere a request waits for the handler, which holds the one write lock."""

    class Writing(Asking):
        def __call__(self, state: Tally, ctx: NodeContext) -> Any:
            Group.objects.create(name="row")
            return super().__call__(state, ctx)

    cancelled(Writing(), DjangoCheckpointer(), opens=False, transactional=True)
    assert rows() == []
