"""Leases of activations: dead and stale workers, limits, what others may do meanwhile.

Row PE-07. Leases expire in the database only; only PostgreSQL spreads.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django_q.models import OrmQ

from stateknot import START, GraphBuilder, NodeContext
from stateknot.errors import LeaseError, ThreadBusyError
from stateknot.kernel.records import Fence
from stateknot.models import ActivationLease, NodeAttempt, Run
from stateknot.runtime.activations import run_one
from stateknot.runtime.recovery import sweep
from stateknot.runtime.waking import ACTIVATION_TASK, TASK
from stateknot.runtime.worker import on_worker, require_graph
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.services import cancel_run, retry_run, start_run, update_state
from stateknot.storage import DjangoCheckpointer
from stateknot.storage.spreading import claim_activation
from stateknot.tasks import activate, drive
from tests.application.test_spread_steps import GRAPH, Fan, build, tasks, work

# Elsewhere a step that is to be spread runs in one process.
pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.django_db(transaction=True)]


def begin(plan: list[str], register: Any, **how: Any) -> Run:
    """Start a run whose second step is spread, and let it be."""
    register(build(spread=True, **how))
    run = start_run(GRAPH, {"plan": plan}, thread_id="t")
    ((pk, func, row_id),) = tasks()
    assert func == TASK
    OrmQ.objects.filter(pk=pk).delete()
    drive(row_id)
    return run


def take_part(holder: str = "lost") -> Fence:
    """Let a worker claim the first activation that is open, and say nothing more."""
    store = DjangoCheckpointer()
    lease = ActivationLease.objects.filter(ended_at=None).order_by("place")[0]
    with store.atomic():
        taken = claim_activation(str(lease.id), holder, store.using)
    assert taken is not None
    return taken.fence


def expire_part() -> None:
    past = Now() - timedelta(seconds=60)
    held = ActivationLease.objects.exclude(holder="")
    assert held.update(lease_expires_at=past, woken_at=past) == 1


def attempts() -> list[tuple[str, int, str]]:
    rows = NodeAttempt.objects.order_by("activation_id", "number")
    return list(rows.values_list("activation_id", "number", "status"))


def test_pe_07_each_activation_is_a_task_of_its_own(register_only: Any) -> None:
    begin(["do"] * 4, register_only)
    assert [func for _, func, _ in tasks()] == [ACTIVATION_TASK] * 4
    assert work() == 4


def test_run_is_held_while_its_step_is_spread(register_only: Any) -> None:
    """Nobody claims, edits or sweeps it as one that nobody drives."""
    run = begin(["do", "do"], register_only)
    drive(str(run.id))
    with pytest.raises(ThreadBusyError):
        update_state("t", {"is_mended": True})
    Run.objects.update(woken_at=Now() - timedelta(seconds=60))
    assert sweep().run_ids == ()
    assert Run.objects.driven().count() == 1
    work()
    assert get_run(run.id).status == "completed"


def test_no_more_activations_are_woken_than_run_at_once(register_only: Any) -> None:
    begin(["do"] * 5, register_only, at_once=2)
    ActivationLease.objects.filter(woken_at=None).update(lease_expires_at=None)
    for left in (2, 2, 2, 2, 1):
        waiting = tasks()
        assert len(waiting) == left
        assert ActivationLease.objects.filter(ended_at=None, woken_at=None).count() == (
            ActivationLease.objects.filter(ended_at=None).count() - left
        )
        pk, _, row_id = waiting[0]
        OrmQ.objects.filter(pk=pk).delete()
        activate(row_id)
    assert tasks() == []
    assert Run.objects.get().status == "completed"


def test_doubled_wake_up_runs_an_activation_once(register_only: Any) -> None:
    begin(["do", "do"], register_only)
    for _, _, row_id in [*tasks(), *tasks()]:
        activate(row_id)
    succeeded = [name for name, _, status in attempts() if status == "succeeded"]
    assert succeeded == ["1:0:fan_out", "2:0:work", "2:1:work"]


def test_activation_of_a_dead_worker_is_taken_over(register_only: Any) -> None:
    """After its lease, by the sweep; its attempt was lost, its siblings' were not."""
    begin(["do", "do"], register_only)
    take_part()
    work()
    assert Run.objects.get().holder != ""
    expire_part()
    sweep()
    assert work() == 1
    assert Run.objects.get().status == "completed"
    assert attempts()[1:] == [
        ("2:0:work", 1, "lost"),
        ("2:0:work", 2, "succeeded"),
        ("2:1:work", 1, "succeeded"),
    ]


def test_sweep_leaves_a_live_activation_alone(register_only: Any) -> None:
    begin(["do", "do"], register_only)
    OrmQ.objects.all().delete()
    take_part()
    ActivationLease.objects.update(woken_at=Now() - timedelta(seconds=60))
    sweep()
    assert len(tasks()) == 1


def test_stale_worker_of_an_activation_writes_nothing(register_only: Any) -> None:
    """Its own epoch is over; and so is the run's once the step has ended."""
    begin(["do", "do"], register_only)
    first = take_part()
    expire_part()
    second = take_part("next")
    store = DjangoCheckpointer()
    for fence, is_refused in ((first, True), (second, False)):
        for write in (
            lambda fence=fence: store.renew(fence),
            lambda fence=fence: store.record_attempts(fence, [], []),
        ):
            with store.atomic():
                assert _is_refused(write) is is_refused
    expire_part()
    sweep()
    work()
    with store.atomic():
        assert _is_refused(lambda: store.record_attempts(second, [], []))


def _is_refused(write: Any) -> bool:
    try:
        write()
    except LeaseError:
        return True
    return False


def test_activation_that_kills_its_workers_fails_the_step(
    register_only: Any, settings: Any
) -> None:
    """As a node's failure: the siblings' results are kept."""
    settings.STATEKNOT = {"worker_lost_limit": 2}
    run = begin(["do", "do"], register_only)
    for _ in range(2):
        take_part()
        expire_part()
    work()
    sweep()
    work()
    run = get_run(run.id)
    assert (run.status, run.error_code) == ("failed", "node.worker_lost")
    assert run.failed_node == "work"
    assert ("2:1:work", 1, "succeeded") in attempts()
    settings.STATEKNOT = {}
    retry_run("t")
    work()
    assert get_state("t").values.log == ["0 do 0", "1 do 1"]


def test_barrier_of_a_dead_worker_runs_nothing_again(register_only: Any) -> None:
    """The worker that stored the last result went down before the boundary."""
    run = begin(["do", "ask"], register_only)
    parts = [row_id for _, _, row_id in tasks()]
    OrmQ.objects.all().delete()
    store = DjangoCheckpointer()
    for row_id in parts:
        record = store.find_run(str(run.id))
        assert record is not None
        graph = on_worker(require_graph(record), store, record)
        fence = run_one(store, graph, record, row_id)
    assert fence is not None
    past = Now() - timedelta(seconds=60)
    Run.objects.update(lease_expires_at=past, woken_at=past)
    assert sweep().run_ids == (str(run.id),)
    work()
    assert get_run(run.id).status == "interrupted"
    assert [status for _, _, status in attempts()] == [
        "succeeded",
        "succeeded",
        "interrupted",
    ]


def test_process_of_other_code_leaves_an_activation(register_only: Any) -> None:
    begin(["do", "do"], register_only)
    register_only()
    work()
    assert ActivationLease.objects.filter(ended_at=None, holder="").count() == 2


def test_result_without_a_stored_form_runs_again_at_the_barrier(
    register_only: Any,
) -> None:
    """No process can hand it to another; the one that commits makes it itself."""
    builder = GraphBuilder(GRAPH, state=Fan)
    calls: list[str] = []

    def odd(_fan: Fan, ctx: NodeContext) -> Any:
        calls.append(ctx.node_id)
        return (
            {"log": [Odd(ctx.node_id)]} if ctx.node_id == "odd" else {"log": ["even"]}
        )

    builder.add_node("odd", odd).add_node("even", odd)
    builder.add_edge(START, ["odd", "even"])
    register_only(builder.compile().with_parallel(spread=True))
    start_run(GRAPH, {}, thread_id="t")
    work()
    assert get_state("t").values.log == ["even", "odd"]
    assert sorted(calls) == ["even", "odd", "odd"]


class Odd(str):
    """A text that JSON brings back as a plain one."""


def test_time_of_a_spread_step_counts_for_the_deadline(register_only: Any) -> None:
    run = begin(["do", "do"], register_only)
    _, first = tasks()
    activate(first[2])
    hour = Now() - timedelta(hours=1)
    ActivationLease.objects.exclude(started_at=None).update(started_at=hour)
    work()
    assert get_run(run.id).active_seconds > 3_500


def test_journal_tells_of_every_activation_once(register_only: Any) -> None:
    run = begin(["do", "do", "do"], register_only)
    work()
    kinds = [event.kind for row in get_timeline(run.id) for event in row.events]
    assert kinds.count("step.spread") == 1
    assert kinds.count("node.started") == 4
    assert kinds.count("node.completed") == 4
    assert kinds.count("step.started") == 2


def test_cancel_ends_a_spread_step_with_its_last_activation(
    register_only: Any,
) -> None:
    """What nobody began is not begun any more; what runs is told."""
    run = begin(["do", "do"], register_only)
    OrmQ.objects.all().delete()
    fence = take_part()
    cancel_run(run.id, reason="no need")
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.renew(fence) is True
    left = ActivationLease.objects.get(holder="")
    activate(str(left.id))
    assert attempts() == [("1:0:fan_out", 1, "succeeded")]
    Run.objects.update(lease_expires_at=Now() - timedelta(seconds=1))
    sweep()
    assert get_run(run.id).status == "cancelled"
    with store.atomic():
        assert _is_refused(lambda: store.record_attempts(fence, [], []))


def test_cancel_of_a_spread_step_takes_one_lease(
    register_only: Any, settings: Any
) -> None:
    """Its run's lease had no end; behind the request it has one."""
    settings.STATEKNOT = {"lease_seconds": 5.0}
    run = begin(["do", "do"], register_only)
    cancel_run(run.id, reason="no need")
    until = get_run(run.id).lease_expires_at
    assert until is not None
    assert until <= DjangoCheckpointer().now() + timedelta(seconds=5)
