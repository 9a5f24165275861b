"""Two workers and one run: who may write when the first one is taken for dead.

Leases expire in the database only, so these tests are about the Django store.
"""

from __future__ import annotations

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from stateknot import NodeContext, RunStatus
from tests.runtime.drives import admit, attempts_of, drive
from tests.runtime.graphs import PATIENCE, Tally, add_fan, new_builder, note, sources

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from stateknot.runtime.worker import Driven

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_registry"),
]


class Stuck:
    """A handler whose first call waits to be let go; each says which call it was."""

    def __init__(self) -> None:
        self.entered, self.let_go = threading.Event(), threading.Event()
        self.calls = 0
        self.was_told: bool | None = None

    def __call__(self, _state: Tally, ctx: NodeContext) -> Any:
        self.calls += 1
        number = self.calls
        if number == 1:
            self.entered.set()
            assert self.let_go.wait(PATIENCE)
            self.was_told = ctx.is_cancelled()
        return {"log": [f"call {number}"]}


@contextmanager
def driven_elsewhere(store: Any, stuck: Stuck) -> Iterator[Future[Driven]]:
    """Let another worker drive the run until it is stuck; let it go at the end."""

    def work() -> Driven:
        try:
            return drive(store)
        finally:
            store.thread_finished()

    with ThreadPoolExecutor(1) as pool:
        driving = pool.submit(work)
        try:
            assert stuck.entered.wait(PATIENCE)
            yield driving
        finally:
            stuck.let_go.set()


@pytest.fixture
def store() -> Any:
    """Give the database's store."""
    from stateknot.storage import DjangoCheckpointer

    return DjangoCheckpointer()


def expire_lease() -> None:
    """Let the lease of the run have run out."""
    from datetime import timedelta

    from django.db.models.functions import Now

    from stateknot.models import Run

    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))


def two_nodes(store: Any, stuck: Stuck) -> Any:
    builder = add_fan(new_builder(), {"a": stuck}).add_node("b", note("b"))
    graph = builder.add_edge("a", "b").compile().with_checkpointer(store)
    admit(graph)
    return graph


def test_held_run_is_driven_once(store: Any) -> None:
    """EX-03 a, PF-15: two more wake-ups find it held, and its handler runs once."""
    stuck = Stuck()
    graph = two_nodes(store, stuck)
    with driven_elsewhere(store, stuck) as driving:
        assert [drive(store).status for _ in range(2)] == [None, None]
        stuck.let_go.set()
        assert driving.result(PATIENCE).status is RunStatus.COMPLETED
    assert stuck.calls == 1
    assert graph.get_state("t").values.log == ["call 1", "b"]


def test_wq_16_worker_that_lost_its_lease_writes_nothing(
    store: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """EX-03 b, WQ-16: the second has a higher epoch; the first one's commit is refused.

    It changes nothing, is logged, and the state comes from one attempt.
    """
    caplog.set_level(logging.WARNING, logger="stateknot")
    stuck = Stuck()
    graph = two_nodes(store, stuck)
    with driven_elsewhere(store, stuck) as driving:
        first = store.find_thread_run("t").epoch
        expire_lease()
        assert drive(store).status is RunStatus.COMPLETED
        before = (graph.get_state("t"), len(attempts_of(store)))
        stuck.let_go.set()
        assert driving.result(PATIENCE).status is None
    assert store.find_thread_run("t").epoch == first + 1
    assert (graph.get_state("t"), len(attempts_of(store))) == before
    assert graph.get_state("t").values.log == ["call 2", "b"]
    assert sources(graph, "t") == ["input", "loop", "loop"]
    assert "lease lost" in caplog.messages


def test_handler_hears_that_its_lease_was_lost(store: Any, settings: Any) -> None:
    """EX-03 b: by the heartbeat, while it still runs, so that it can stop."""
    own = getattr(settings, "STATEKNOT", {})
    settings.STATEKNOT = {**own, "lease_seconds": 1}
    stuck, lost = Stuck(), threading.Event()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage() == "lease lost":
                lost.set()

    handler = Heard()
    logging.getLogger("stateknot").addHandler(handler)
    try:
        two_nodes(store, stuck)
        with driven_elsewhere(store, stuck):
            expire_lease()
            drive(store)
            assert lost.wait(PATIENCE)
    finally:
        logging.getLogger("stateknot").removeHandler(handler)
    assert stuck.was_told is True


def test_run_whose_process_died_is_taken_up(store: Any) -> None:
    """EX-02: accepted before anybody drove it, it is there, due, and completes."""
    stuck = Stuck()
    stuck.let_go.set()
    graph = two_nodes(store, stuck)
    run = store.find_thread_run("t")
    assert (run.status, sources(graph, "t")) == (RunStatus.PENDING, ["input"])
    assert drive(store).status is RunStatus.COMPLETED
