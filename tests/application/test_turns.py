"""Whose turn it is: limits, priorities, and fairness between graphs.

Row WQ-17. Leases expire in the database only.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from itertools import cycle
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connections
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot.kernel.records import NO_LIMIT, Slots
from stateknot.models import Run
from stateknot.runtime.recovery import sweep
from stateknot.runtime.turns import choose
from stateknot.selectors import get_run
from stateknot.services import start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import ASK, BREAK, LINE, build_line, queued, work

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("desk")]


@pytest.fixture
def one_line(desk: None, register_only: Callable[..., None]) -> None:
    """Let one run of LINE be driven at once."""
    register_only(build_line().with_limits(max_running=1))


def start(count: int, graph_id: str = LINE, **facts: Any) -> list[str]:
    first = Run.objects.count()
    return [
        str(start_run(graph_id, {}, thread_id=f"t{first + i}", **facts).id)
        for i in range(count)
    ]


def lose_wake_ups() -> None:
    OrmQ.objects.all().delete()
    Run.objects.update(woken_at=Now() - timedelta(seconds=60))


def take(run_id: str, slots: Slots = NO_LIMIT) -> bool:
    store = DjangoCheckpointer()
    with store.atomic():
        return store.claim(run_id, "worker", slots=slots) is not None


def expire(run_id: str) -> None:
    past = Now() - timedelta(seconds=1)
    Run.objects.filter(id=run_id).update(lease_expires_at=past)


def take_in_turn(count: int, draw: Callable[[], float]) -> list[str]:
    """Claim `count` times with the same wake-up; gives the graphs."""
    named = str(Run.objects.order_by("created_at")[0].id)
    taken = []
    for _ in range(count):
        chosen = choose(named, using="default", draw=draw)
        assert chosen is not None
        assert take(chosen)
        taken.append(get_run(chosen).graph_id)
    return taken


def test_higher_priority_goes_first_whatever_the_wake_up_names() -> None:
    low, high = start(2)
    Run.objects.filter(id=high).update(priority=5)
    assert choose(low, using="default") == high
    take(high)
    assert choose(high, using="default") == low


def test_of_equal_priority_the_named_run_goes() -> None:
    """Workers with different wake-ups of one graph do not meet at one run."""
    runs = start(3)
    assert [choose(run, using="default") for run in runs] == runs


def test_graph_with_many_waiting_runs_does_not_starve_another() -> None:
    """One of 40 and one of 3: they take turns, although all 40 were first."""
    start(40)
    start(3, BREAK)
    draws = cycle([0.0, 0.9])
    assert take_in_turn(6, lambda: next(draws)) == [BREAK, LINE] * 3
    assert set(take_in_turn(4, lambda: next(draws))) == {LINE}


def test_every_waiting_run_is_driven_with_its_wake_ups_in_any_order() -> None:
    start(5)
    start(2, BREAK, priority=3)
    start(2, ASK, priority=-1)
    work()
    assert set(Run.objects.values_list("status", flat=True)) == {
        "completed",
        "interrupted",
    }


def test_wake_up_of_a_finished_run_is_used_for_the_next() -> None:
    done, waiting = start(2)
    drive(done)
    lose_wake_ups()
    drive(done)
    assert get_run(waiting).status == "completed"


def test_run_of_other_code_does_not_block_its_graphs_line(
    register_only: Callable[..., None],
) -> None:
    (old,) = start(1)
    register_only(build_line("2.0.0"))
    (new,) = start(1)
    drive(old)
    assert [get_run(run).status for run in (old, new)] == ["pending", "completed"]


@pytest.mark.usefixtures("one_line")
def test_wq_17_full_graph_is_left_and_woken_when_a_slot_is_free() -> None:
    driven, second, third = start(3)
    take(driven)
    work()
    assert Run.objects.filter(status="pending").count() == 2
    expire(driven)
    drive(driven)
    assert get_run(driven).status == "completed"
    assert queued() == [second]
    work()
    assert get_run(third).status == "completed"


@pytest.mark.usefixtures("one_line")
def test_wq_05_lost_worker_blocks_its_slot_no_longer_than_its_lease() -> None:
    """WQ-05, WQ-17: a slot is a live lease and nothing else."""
    lost, waiting = start(2)
    one = Slots(of_graph=1)
    assert take(lost, one)
    assert not take(waiting, one)
    expire(lost)
    assert take(waiting, one)


@pytest.mark.usefixtures("one_line")
def test_wq_17_run_given_up_frees_its_slot(settings: Any) -> None:
    settings.STATEKNOT = {"worker_lost_limit": 1}
    lost, waiting = start(2)
    one = Slots(of_graph=1)
    take(lost, one)
    expire(lost)
    assert not take(lost, one)
    assert get_run(lost).error_code == "node.worker_lost"
    assert take(waiting, one)


def test_wq_17_setting_wins_over_the_code(settings: Any, one_line: None) -> None:
    settings.STATEKNOT = {"max_running": {LINE: 2}}
    first, second, third = start(3)
    take(first)
    assert choose(second, using="default") == second
    take(second)
    assert choose(third, using="default") is None


def test_wq_17_total_holds_over_all_graphs(settings: Any) -> None:
    settings.STATEKNOT = {"max_running_total": 1}
    (first,), (other,) = start(1), start(1, BREAK)
    take(first)
    drive(other)
    assert get_run(other).status == "pending"
    expire(first)
    drive(first)
    assert len(queued()) == 3
    work()
    assert get_run(other).status == "completed"


@pytest.mark.usefixtures("one_line")
def test_wq_17_sweep_wakes_no_more_than_have_a_slot() -> None:
    runs = start(3)
    lose_wake_ups()
    assert sweep().run_ids == (runs[0],)
    take(runs[0])
    lose_wake_ups()
    assert sweep().run_ids == ()


def test_sweep_wakes_each_graph_in_turn(settings: Any) -> None:
    settings.STATEKNOT = {"sweep_batch": 4}
    lines = start(10)
    breaks = start(2, BREAK)
    (urgent,) = start(1, ASK, priority=1)
    lose_wake_ups()
    assert sweep().run_ids == (urgent, lines[0], breaks[0], lines[1])


def test_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        build_line().with_limits(max_running=0)


@pytest.mark.django_db(transaction=True)
def test_wq_17_claims_at_the_same_time_do_not_pass_the_limit() -> None:
    runs = start(6)
    ready = threading.Barrier(len(runs))
    taken: list[bool] = []

    def work() -> None:
        ready.wait()
        try:
            taken.append(take(left.pop(), Slots(of_graph=2)))
        finally:
            connections.close_all()

    left = list(runs)
    threads = [threading.Thread(target=work) for _ in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 4 + [True] * 2
    assert Run.objects.driven().count() == 2
