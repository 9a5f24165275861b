"""The recorded compositions as graphs that run, and their recorded traces.

Handlers are those of the traces: `work` writes its iteration, `decide` accepts in the
iteration that the trace says, `exhausted` fails with the trace's code. `Executed` keeps
who ran, in which superstep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from stateknot import Command, CompiledGraph, NodeContext, NodeError
from tests.kernel.composition_samples import compose_vector
from tests.kernel.graph_samples import Json, composition_vectors

if TYPE_CHECKING:
    from collections.abc import Callable

VECTORS = composition_vectors()
LOOP_2, LOOP_3, LIMITED = (
    f"postgres_fixture_iterations_{name}"
    for name in ("2_steps_16", "3_steps_16", "3_steps_2")
)


class Step(BaseModel):
    step: str = "initial"


class Count(BaseModel):
    count: int


class Executed(list[tuple[str, int]]):
    """The node and the superstep, from 0, of each call of a handler."""

    def note(self, ctx: NodeContext) -> None:
        self.append((ctx.node_id, ctx.step - 1))


def last(_state: Any, updates: Any) -> Any:
    """The reducer of the recorded fixtures: the last ordered update."""
    return updates[-1][1]


def add_counts(state: Count, updates: Any) -> Any:
    return {"count": state.count + sum(update["count"] for _, update in updates)}


def looping(
    vector: str = LOOP_3, stop_after: int = 99, log: Executed | None = None
) -> CompiledGraph:
    """The recorded loop over `step`; it accepts once that many iterations are done."""
    ran = Executed() if log is None else log

    def work(_state: Step, ctx: NodeContext) -> Any:
        ran.note(ctx)
        return {"step": f"iteration-{ctx.source.iteration}"}

    def decide(state: Step, ctx: NodeContext) -> Command:
        ran.note(ctx)
        assert state.step == f"iteration-{ctx.source.iteration}"
        accepts = ctx.source.iteration + 1 >= stop_after
        return Command(route="accept" if accepts else "retry")

    ends = ending(ran, {"ok": True}, "graph.loop_exhausted")
    return CompiledGraph.from_definition(
        compose_vector(VECTORS[vector]),
        handlers={"work": work, "decide": decide, **ends},
        state=Step,
        update=Step,
        reducer=last,
    )


def counting(accept_at: int, log: Executed) -> CompiledGraph:
    """The recorded counter review."""

    def work(_state: Count, ctx: NodeContext) -> Any:
        log.note(ctx)
        return {"count": 1}

    def decide(state: Count, ctx: NodeContext) -> Command:
        log.note(ctx)
        return Command(route="accept" if state.count >= accept_at else "retry")

    ends = ending(log, None, "review.iterations_exhausted")
    return CompiledGraph.from_definition(
        compose_vector(VECTORS["counter_review_example"]),
        handlers={"work": work, "decide": decide, **ends},
        state=Count,
        update=Count,
        reducer=add_counts,
    )


def ending(log: Executed, output: Any, code: str) -> dict[str, Callable[..., Any]]:
    """Both ends of a loop; without `output` the state is it."""

    def finish(state: BaseModel, ctx: NodeContext) -> Command:
        log.note(ctx)
        return Command(output=state.model_dump() if output is None else output)

    def exhausted(_state: BaseModel, ctx: NodeContext) -> None:
        log.note(ctx)
        raise NodeError(code, "no iteration accepted")

    return {"finish": finish, "exhausted": exhausted}


def traced(name: str, log: Executed) -> tuple[CompiledGraph, Json]:
    """The graph of a recorded trace, and the trace."""
    trace = VECTORS[f"trace_{name}"]
    inputs = trace["inputs"]
    if "stop_after" in inputs:
        return looping(inputs["composition"], inputs["stop_after"], log), trace
    return counting(inputs["accept_when_count_at_least"], log), trace


def boundaries(graph: CompiledGraph, thread_id: str = "t") -> list[Any]:
    """What stands at each checkpoint of a run, oldest first: step, due nodes, state."""
    history = reversed(graph.get_state_history(thread_id))
    return [
        (found.metadata["step"], found.next_nodes, found.values.model_dump())
        for found in history
        if found.metadata["source"] in ("input", "loop")
    ]


def expected_boundaries(trace: Json) -> list[Any]:
    return [
        (step["superstep"], step["ready_nodes"], step["state"])
        for step in trace["expected"].get("trace", ())
    ]


def expected_calls(trace: Json) -> list[tuple[str, int]]:
    return [
        (node["node_id"], step["superstep"])
        for step in trace["expected"]["trace"]
        for node in step["nodes"]
    ]
