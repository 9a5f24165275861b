"""What one superstep decides: the lowest index, and what is kept behind it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.kernel.blueprint import Blueprint
from stateknot.kernel.commands import Interrupt, Overwrite
from stateknot.kernel.failure import NodeFailure
from stateknot.kernel.outcome import (
    Asked,
    Completed,
    Deferred,
    Failed,
    NotRun,
    Outcome,
)
from stateknot.kernel.records import JoinState
from stateknot.kernel.superstep import (
    SuperstepPlan,
    find_deferred,
    find_unsatisfied_join,
    plan_superstep,
)
from stateknot.kernel.vocabulary import CheckpointSource
from tests.kernel.blueprint_samples import NO_JOINS, act, builder_of, diamond, gone
from tests.kernel.state_samples import Tally

ASKED = Asked(interrupts=(Interrupt("?"),))


def failed(node: str) -> Failed:
    failure = NodeFailure.of(ValueError("x"), node_id=node, activation_id=f"1:{node}")
    return Failed(failure=failure)


def plan(
    outcomes: dict[str, Outcome],
    blueprint: Blueprint | None = None,
    state: Tally | None = None,
    joins: JoinState = NO_JOINS,
) -> SuperstepPlan:
    """The plan for `outcomes` by node, in active order."""
    pairs = [(act(f"{node}#1:{node}"), outcome) for node, outcome in outcomes.items()]
    return plan_superstep(
        blueprint or forks(), state or Tally(), pairs, joins=joins, step=1
    )


def forks() -> Blueprint:
    """a, b and c side by side, each with a successor of its own."""
    builder = builder_of("a b c after_a after_b after_c", "a b c")
    for node in "abc":
        builder.add_edge(node, f"after_{node}")
    return builder.blueprint()


def note(text: str) -> Completed:
    return Completed(update={"items": [text]})


def pending(result: SuperstepPlan) -> list[str]:
    return [activation.node for activation in result.pending]


def nodes(pairs: Any) -> list[str]:
    return [activation.node for activation, _ in pairs]


def test_step_of_completed_activations_advances() -> None:
    result = plan({"a": note("a"), "b": Completed(), "c": note("c")})
    assert result.source is CheckpointSource.LOOP
    assert pending(result) == ["after_a", "after_b", "after_c"]
    assert result.delta.changes == {"items": ["a", "c"]}
    assert nodes(result.done) == ["a", "b", "c"]
    assert result.failure is None


def test_question_decides_and_keeps_what_is_behind_it() -> None:
    """Scenario 95, D18: the later result is kept, not folded and not lost."""
    result = plan({"a": note("a"), "b": ASKED, "c": note("c")})
    assert result.source is CheckpointSource.INTERRUPT
    assert pending(result) == ["after_a", "b", "c"]
    assert (nodes(result.done), nodes(result.kept)) == (["a"], ["c"])
    assert result.delta.changes == {"items": ["a"]}
    assert [a.id for a in result.pending] == ["", "1:b", "1:c"]


def test_every_question_of_a_step_is_recorded() -> None:
    """Decision 3."""
    result = plan({"a": ASKED, "b": note("b"), "c": ASKED})
    assert nodes(result.asked) == ["a", "c"]
    assert pending(result) == ["a", "b", "c"]


def test_lowest_of_failure_and_question_decides() -> None:
    first = plan({"a": failed("a"), "b": ASKED, "c": failed("c")})
    assert first.source is CheckpointSource.FAILURE
    assert first.failure is not None
    assert first.failure.node_id == "a"
    assert nodes(first.asked) == ["b"]
    second = plan({"a": ASKED, "b": failed("b"), "c": note("c")})
    assert second.source is CheckpointSource.INTERRUPT
    assert second.failure is None
    assert nodes(second.kept) == ["c"]


def test_activation_that_was_not_reached_stays_pending() -> None:
    result = plan({"a": failed("a"), "b": NotRun(), "c": NotRun()})
    assert pending(result) == ["a", "b", "c"]
    assert (result.done, result.kept) == ((), ())


def test_refused_update_decides_and_is_not_kept() -> None:
    """Decision 6: folding it again could never end otherwise."""
    result = plan({"a": note("a"), "b": Completed(update={"typo": 1}), "c": note("c")})
    assert result.source is CheckpointSource.FAILURE
    assert result.failure is not None
    assert (result.failure.node_id, result.failure.code) == ("b", "node.update_refused")
    assert pending(result) == ["after_a", "b", "c"]
    assert (nodes(result.done), nodes(result.kept)) == (["a"], ["c"])
    assert result.delta.changes == {"items": ["a"]}


def test_reducer_failure_does_not_mask_the_node_failure() -> None:
    """D7: the lower index decides, and the other stays pending."""
    result = plan({"a": Completed(update={"items": None}), "b": failed("b")})
    assert pending(result) == ["a", "b"]
    assert result.failure is not None
    assert (result.failure.node_id, result.failure.kind) == ("a", "reducer")


def test_node_failure_in_front_hides_the_refused_update_behind_it() -> None:
    result = plan({"a": failed("a"), "b": Completed(update={"typo": 1})})
    assert result.failure is not None
    assert result.failure.node_id == "a"
    assert nodes(result.kept) == ["b"]


def test_conflicting_writers_leave_the_state_unchanged() -> None:
    """PF-08, decision 13."""
    writes = Completed(update={"owner": "me"})
    result = plan({"a": Completed(update={}), "b": writes, "c": writes})
    assert result.failure is not None
    assert result.failure.node_id == "b"
    assert result.delta.changes == {}
    assert pending(result) == ["after_a", "b", "c"]


def test_two_overwrites_of_one_field_conflict() -> None:
    """ST-06."""
    replaces = Completed(update={"items": Overwrite([])})
    result = plan({"a": replaces, "b": replaces}, state=Tally(items=["x"]))
    assert result.source is CheckpointSource.FAILURE
    assert result.state == Tally(items=["x"])


def test_routing_failure_keeps_the_result_pending() -> None:
    """Decision 2: a retry repeats the router and the fold, not the node."""
    lost = Completed(update={"items": ["b"]}, goto=("nowhere",))
    result = plan({"a": note("a"), "b": lost, "c": note("c")})
    assert result.failure is not None
    assert (result.failure.node_id, result.failure.kind) == ("b", "unknown_target")
    assert (nodes(result.done), nodes(result.kept)) == (["a"], ["b", "c"])
    assert result.delta.changes == {"items": ["a"]}


def test_router_sees_only_what_is_folded_with_it() -> None:
    """A failure further on takes its update out of the state that is routed on."""
    builder = builder_of("a b few many", "a b")
    builder.add_conditional_edges(
        "a", lambda s: "many" if len(s.items) > 1 else "few", ["few", "many"]
    )
    refused = Completed(update={"items": ["b"], "total": "x"})
    both = plan({"a": note("a"), "b": note("b")}, builder.blueprint())
    alone = plan({"a": note("a"), "b": refused}, builder.blueprint())
    assert pending(both) == ["many"]
    assert pending(alone) == ["few", "b"]


def test_output_must_be_alone_in_its_barrier() -> None:
    output = Completed(output={"x": 1})
    assert plan({"a": output}).source is CheckpointSource.LOOP
    result = plan({"a": note("a"), "b": output})
    assert result.failure is not None
    assert (result.failure.node_id, result.failure.kind) == ("b", "routing")


def test_pending_predecessor_holds_the_join_at_a_pause() -> None:
    """Scenario 110."""
    result = plan({"b": note("b"), "c": ASKED}, diamond())
    assert (pending(result), result.joins) == (["c"], JoinState(arrivals={"d": ("b",)}))
    resumed = plan({"c": note("c")}, diamond(), joins=result.joins)
    assert pending(resumed) == ["d"]


outcome_lists = st.lists(
    st.sampled_from(["done", "asked", "failed", "refused", "lost", "later"]),
    min_size=1,
    max_size=6,
)


def outcome_of(kind: str, index: int) -> Outcome:
    kinds: dict[str, Outcome] = {
        "done": note(str(index)),
        "asked": ASKED,
        "failed": failed(f"n{index}"),
        "refused": Completed(update={"typo": 1}),
        "lost": Completed(goto=("nowhere",)),
        "later": NotRun(),
    }
    return kinds[kind]


@given(outcome_lists)
def test_lowest_index_decides_whatever_comes_behind(kinds: list[str]) -> None:
    """Decision 2, for every mix of outcomes."""
    names = [f"n{index}" for index in range(len(kinds))]
    blueprint = builder_of(" ".join(names), " ".join(names)).blueprint()
    outcomes = {n: outcome_of(kinds[i], i) for i, n in enumerate(names)}
    result = plan(outcomes, blueprint)
    deciding = next((i for i, k in enumerate(kinds) if k != "done"), len(kinds))
    assert nodes(result.done) == names[:deciding]
    assert pending(result) == names[deciding:]
    assert result.state == Tally(items=[str(i) for i in range(deciding)])
    reusable = {"done", "refused", "lost"}
    behind = [n for i, n in enumerate(names) if kinds[i] in reusable and i > deciding]
    assert [n for n in nodes(result.kept) if n != f"n{deciding}"] == behind
    assert nodes(result.asked) == [
        n for i, n in enumerate(names) if kinds[i] == "asked"
    ]


def test_deferred_retry_decides_only_as_the_lowest() -> None:
    later, sooner = Deferred(delay_seconds=9), Deferred(delay_seconds=2)
    outcomes: list[tuple[list[Outcome], float | None]] = [
        ([note("a"), sooner, later], 9),
        ([sooner, ASKED], 2),
        ([ASKED, later], None),
        ([failed("a"), later], None),
        ([note("a")], None),
    ]
    for items, delay in outcomes:
        assert find_deferred([(act("a"), item) for item in items]) == delay


def test_join_that_can_never_fire_is_told_with_who_is_missing() -> None:
    """D12, scenario 116 decided otherwise, PF-02."""
    result = plan({"b": note("b")}, diamond())
    failure = find_unsatisfied_join(diamond(), result)
    assert failure is not None
    assert (failure.node_id, failure.code) == ("d", "graph.join_unsatisfied")
    assert "'d'" in failure.message
    assert "c did not arrive" in failure.message


@pytest.mark.parametrize("outcomes", [{"b": note("b"), "c": ASKED}, {"d": note("d")}])
def test_run_with_work_left_or_no_arrival_is_satisfied(outcomes: Any) -> None:
    assert find_unsatisfied_join(diamond(), plan(outcomes, diamond())) is None


def test_sink_that_chose_the_end_completes() -> None:
    result = plan({"a": gone("__end__")})
    assert (result.pending, result.source) == ((), CheckpointSource.LOOP)
