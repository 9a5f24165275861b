"""Superstep spread over workers: the same results as in one process.

Row PE-07. Two drives of each graph are compared: activations as tasks of their own,
and in one process. Only PostgreSQL spreads.
"""

from __future__ import annotations

import random
from typing import Annotated, Any

import pytest
from django.db.models.functions import Now
from django_q.models import OrmQ
from pydantic import BaseModel

from stateknot import (
    START,
    Command,
    GraphBuilder,
    Interrupt,
    NodeContext,
    RetryableError,
    RetryPolicy,
    Send,
    append,
)
from stateknot.models import ActivationLease, NodeAttempt, Run
from stateknot.runtime.waking import ACTIVATION_TASK, TASK
from stateknot.selectors import get_state
from stateknot.services import resume_run, retry_run, start_run, update_state
from stateknot.tasks import activate, drive

# Elsewhere a step that is to be spread runs in one process.
pytestmark = [pytest.mark.only_on("postgres"), pytest.mark.django_db(transaction=True)]
GRAPH = "spread.fan"
MOST_TASKS = 300


class Fan(BaseModel):
    plan: list[str] = []
    log: Annotated[list[str], append] = []
    is_mended: bool = False


def do(what: str, name: str, fan: Fan, ctx: NodeContext) -> Any:
    """One of the ends that an activation can come to."""
    if what == "fail" and not fan.is_mended:
        raise ValueError(f"{name} is broken")
    if what == "ask" and not ctx.has_resume:
        return Interrupt({"who": name}, schema=int)
    if what == "retry" and ctx.attempt == 1:
        raise RetryableError("once more")
    if what == "late" and ctx.attempt == 1:
        raise RetryableError("much later", retry_after=30)
    if what == "goto":
        return Command(update={"log": [name]}, goto=[Send("extra", name)])
    told = "" if ctx.resume is None else f"={ctx.resume}"
    fork = ctx.fork.index if ctx.fork else None
    return {"log": [f"{name}{told} {what} {fork}"]}


def fan_out(fan: Fan) -> Any:
    works = [{"name": str(i), "what": what} for i, what in enumerate(fan.plan)]
    return Command(goto=[Send("work", work) for work in works])


def work_one(fan: Fan, ctx: NodeContext) -> Any:
    return do(ctx.send_arg["what"], ctx.send_arg["name"], fan, ctx)


def extra(_fan: Fan, ctx: NodeContext) -> Any:
    return {"log": [f"extra of {ctx.send_arg}"]}


def build(*, spread: bool, at_once: int | None = None, mode: str = "sync") -> Any:
    builder = GraphBuilder(GRAPH, state=Fan)
    retry = RetryPolicy(max_attempts=3, initial_interval=0.001)
    builder.add_command_node("fan_out", fan_out, destinations=["work"])
    builder.add_command_node("work", work_one, destinations=["extra"], retry=retry)
    builder.add_node("extra", extra).add_edge(START, "fan_out")
    graph = builder.compile()
    return graph.with_parallel(at_once, spread=spread).with_durability(mode)


def tasks() -> list[tuple[int, str, str]]:
    return [
        (row.pk, row.task["func"], row.task["args"][0])
        for row in OrmQ.objects.order_by("id")
    ]


def work(seed: int = 0) -> int:
    """Take tasks in any order until there are none; gives how many were parts."""
    chance, parts = random.Random(seed), 0  # noqa: S311 - an order
    for _ in range(MOST_TASKS):
        waiting = tasks()
        if not waiting:
            return parts
        pk, func, row_id = chance.choice(waiting)
        OrmQ.objects.filter(pk=pk).delete()
        {TASK: drive, ACTIVATION_TASK: activate}[func](row_id)
        parts += func == ACTIVATION_TASK
    raise AssertionError("it wakes itself for ever")


def seen(thread_id: str) -> dict[str, Any]:
    """What a run came to, without what no two runs share."""
    snapshot = get_state(thread_id)
    run = Run.objects.get(thread__key=thread_id)
    attempts = NodeAttempt.objects.filter(run=run).order_by(
        "activation_id", "sequence", "number"
    )
    return {
        "state": snapshot.values.model_dump(),
        "next": snapshot.next_nodes,
        "asked": [question.payload for question in snapshot.pending_interrupts],
        "failed": snapshot.metadata["failed_node"],
        "run": (run.status, run.steps, run.error_code, run.failed_node),
        "attempts": list(attempts.values_list("activation_id", "number", "status")),
    }


def go_through(plan: list[str], graph: Any, register: Any, seed: int) -> list[Any]:
    """Run to where it rests, mend and answer what it rests at, and on to its end."""
    register(graph)
    thread_id = f"t{Run.objects.count()}"
    start_run(GRAPH, {"plan": plan}, thread_id=thread_id)
    stages = []
    for _ in range(2 * len(plan) + 2):
        work(seed)
        stages.append(seen(thread_id))
        run = Run.objects.get(thread__key=thread_id)
        if run.status == "failed":
            update_state(thread_id, {"is_mended": True})
            retry_run(thread_id)
        elif run.status == "interrupted":
            first = get_state(thread_id).pending_interrupts[-1]
            resume_run(thread_id, 7, interrupt_id=first.id)
        elif run.status == "waiting":
            Run.objects.filter(pk=run.pk).update(wake_at=Now())
            drive(str(run.pk))
        else:
            break
    assert stages[-1]["run"][0] == "completed"
    return stages


ENDS = ("do", "do", "fail", "ask", "retry", "late", "goto")


MODES = ("sync", "async", "exit")


def draw_plan(seed: int) -> list[str]:
    chance = random.Random(seed)  # noqa: S311 - a plan, no secret
    return [chance.choice(ENDS) for _ in range(chance.randint(2, 5))]


@pytest.mark.parametrize("seed", range(12))
def test_pe_07_spread_step_gives_what_one_process_gives(
    seed: int, register_only: Any
) -> None:
    """PE-07: order of the fold, who decides, questions, kept results, attempts."""
    plan, mode, at_once = draw_plan(seed), MODES[seed % 3], (None, 1, 2)[seed // 3 % 3]
    spread = build(spread=True, at_once=at_once, mode=mode)
    parts = go_through(plan, spread, register_only, seed)
    whole = go_through(plan, build(spread=False, mode=mode), register_only, seed)
    assert parts == whole
    assert not ActivationLease.objects.exists()
