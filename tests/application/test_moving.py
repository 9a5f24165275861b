"""Runs and revisions: pinned, side by side, drained, moved on purpose.

Row ids are those of cases/field_reports.md.
"""

from __future__ import annotations

import logging
from typing import Any

import pytest

from project.examples import review
from stateknot import START, GraphBuilder
from stateknot.errors import (
    NotFoundError,
    RevisionMismatchError,
    RevisionMoveError,
    ThreadBusyError,
)
from stateknot.models import Checkpoint, GraphRevision, Run
from stateknot.registry import register
from stateknot.runtime.recovery import sweep
from stateknot.runtime.worker import drive_run
from stateknot.selectors import get_run, get_state, get_timeline
from stateknot.selectors.revisions import list_revisions
from stateknot.services import move_run, plan_move, resume_run, retry_run, start_run
from stateknot.storage import DjangoCheckpointer
from tests.application.desk import note, work
from tests.application.lines import (
    GRAPH,
    State,
    WithDefault,
    WithRequired,
    ask,
    begun,
    build,
    fail,
    log_of,
)

pytestmark = pytest.mark.django_db(transaction=True)


def states() -> list[str]:
    return list(
        GraphRevision.objects.order_by("first_seen_at").values_list("state", flat=True)
    )


def test_paused_run_goes_on_with_its_own_revision(register_only: Any) -> None:
    """VD-01: both stand side by side; each run follows the one that it began on."""
    old, new = build("a", "b", b=ask), build("a", "x", "b", b=ask)
    register_only(old)
    begun(old, "T")
    register(new, superseded=[old])
    begun(new, "U")
    for thread_id in ("T", "U"):
        resume_run(thread_id, 1)
    work()
    assert (log_of("T"), log_of("U")) == (["a", "b=1"], ["a", "x", "b=1"])
    shown = {run.thread.key: run.revision.digest for run in Run.objects.all()}
    assert shown == {"T": old.digest, "U": new.digest}


def test_process_with_other_code_refuses_before_any_handler(
    register_only: Any, caplog: Any
) -> None:
    """VD-01, VD-09, scenario 76: both digests, the thread, and what to do."""
    old, new = build("a"), build("a", "x")
    register_only(old)
    run = start_run(GRAPH, {}, thread_id="t")
    register_only(new)
    with pytest.raises(RevisionMismatchError) as refused:
        drive_run(DjangoCheckpointer(), str(run.id))
    text = str(refused.value)
    for told in ("'t'", old.digest, new.digest, "superseded=", "services.move_run"):
        assert told in text
    with caplog.at_level(logging.WARNING, logger="stateknot"):
        work()
    assert old.digest in caplog.text
    run = get_run(run.id)
    assert (run.status, run.epoch) == ("pending", 0)
    assert get_state("t").values == {"log": []}


def test_failed_run_is_retried_on_a_repaired_revision(register_only: Any) -> None:
    """VD-02: nothing is done again, and who moved it stands in the journal."""
    old = build("a", "c", c=fail)
    register_only(old)
    run = begun(old)
    new = register(build("a", "c", "d"), superseded=[old])
    moved = move_run(str(run.id), new.digest, actor="ann")
    assert (moved.status, moved.revision.digest) == ("failed", new.digest)
    retry_run("t")
    work()
    assert log_of() == ["a", "c", "d"]
    (row,) = [
        entry
        for entry in get_timeline(run.id)
        if [event.kind for event in entry.events] == ["run.moved"]
    ]
    facts = row.events[0].data
    assert (row.actor, facts["from"], facts["to"]) == ("ann", old.digest, new.digest)


def test_move_to_a_revision_without_the_due_node_is_refused(
    register_only: Any,
) -> None:
    """VD-02, VD-03, VD-09: the missing node is named, and nothing changed."""
    old = build("a", "c", c=fail)
    register_only(old)
    run = begun(old)
    new = register(build("a", "d"), superseded=[old])
    plan = plan_move(str(run.id), new.digest)
    assert (plan.removed, plan.added) == (("c",), ("d",))
    with pytest.raises(RevisionMoveError) as refused:
        move_run(str(run.id), new.digest)
    assert refused.value.problems == plan.problems
    for told in ("'t'", "'c'", old.digest, new.digest, "alias"):
        assert told in str(refused.value)
    assert get_run(run.id).revision.digest == old.digest


def test_renamed_node_goes_on_under_its_alias(register_only: Any) -> None:
    """VD-03: an open question is answered at the new node."""
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    new = register(build("a", "b2", b2=ask), superseded=[old])
    assert plan_move(str(run.id), new.digest).problems
    plan = plan_move(str(run.id), new.digest, aliases={"b": "b2"})
    assert (dict(plan.renamed), plan.problems) == ({"b": "b2"}, ())
    moved = move_run(str(run.id), new.digest, aliases={"b": "b2"})
    assert moved.status == "interrupted"
    assert get_state("t").next_nodes == ["b2"]
    resume_run("t", 5)
    work()
    assert log_of() == ["a", "b2=5"]


def test_alias_that_leads_nowhere_is_refused(register_only: Any) -> None:
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    new = register(build("a", "b2", b2=ask), superseded=[old])
    plan = plan_move(str(run.id), new.digest, aliases={"b": "b3"})
    assert any("alias 'b' leads to 'b3'" in problem for problem in plan.problems)


def test_new_field_with_a_default_is_filled_in(register_only: Any) -> None:
    """VD-06: the default is there, and the earlier checkpoint is unchanged."""
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    before = dict(Checkpoint.objects.values_list("id", "digest"))
    new = register(build("a", "b", b=ask, state=WithDefault), superseded=[old])
    assert dict(plan_move(str(run.id), new.digest).changes) == {"k": 0}
    move_run(str(run.id), new.digest)
    assert get_state("t").values == WithDefault(log=["a"], k=0)
    after = dict(Checkpoint.objects.values_list("id", "digest"))
    assert after.items() > before.items()
    resume_run("t", 5)
    work()
    assert get_run(run.id).status == "completed"


def test_new_required_field_blocks_the_move(register_only: Any) -> None:
    """VD-06, VD-09: the field is named."""
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    new = register(build("a", "b", b=ask, state=WithRequired), superseded=[old])
    with pytest.raises(RevisionMoveError, match=r"does not fit.*k"):
        move_run(str(run.id), new.digest)


def test_migration_gives_the_required_field(register_only: Any) -> None:
    """VD-06: it is run once; what is stored is the new form."""
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    new = register(build("a", "b", b=ask, state=WithRequired), superseded=[old])
    calls: list[Any] = []

    def migrate(values: dict[str, Any]) -> dict[str, Any]:
        calls.append(values)
        return {**values, "k": len(values["log"])}

    move_run(str(run.id), new.digest, migrate=migrate)
    resume_run("t", 5)
    work()
    assert get_state("t").values == WithRequired(log=["a", "b=5"], k=1)
    assert calls == [{"log": ["a"]}]


def test_driven_run_is_not_moved(register_only: Any) -> None:
    old = build("a")
    register_only(old)
    run = start_run(GRAPH, {}, thread_id="t")
    new = register(build("a", "b"), superseded=[old])
    store = DjangoCheckpointer()
    with store.atomic():
        assert store.claim(str(run.id), "worker") is not None
    with pytest.raises(ThreadBusyError):
        move_run(str(run.id), new.digest)
    assert get_run(run.id).revision.digest == old.digest


def test_ended_run_is_not_moved(register_only: Any) -> None:
    old = build("a")
    register_only(old)
    run = begun(old)
    new = register(build("a", "b"), superseded=[old])
    with pytest.raises(RevisionMoveError, match="it has ended"):
        move_run(str(run.id), new.digest)


def test_move_to_the_same_revision_changes_nothing(register_only: Any) -> None:
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    before = len(get_timeline(run.id))
    move_run(str(run.id), old.digest)
    assert len(get_timeline(run.id)) == before


def test_move_to_code_that_is_not_here_names_what_is(register_only: Any) -> None:
    old = build("a", "b", b=ask)
    register_only(old)
    run = begun(old)
    with pytest.raises(NotFoundError, match=old.digest):
        move_run(str(run.id), build("z").digest)


def test_join_keeps_what_arrived_under_new_names(register_only: Any) -> None:
    """An arrival at a renamed join is not forgotten."""

    def joined(left: str, join: str) -> Any:
        builder = GraphBuilder(GRAPH, state=State)
        builder.add_node(left, note(left)).add_node("right", ask)
        builder.add_node(join, note(join)).add_edge(START, [left, "right"])
        return builder.add_waiting_edge([left, "right"], join).compile()

    old, new = joined("left", "join"), joined("links", "both")
    register_only(old)
    run = begun(old)
    register(new, superseded=[old])
    plan = plan_move(str(run.id), new.digest)
    assert plan.forgotten_joins == ("join",)
    aliases = {"left": "links", "join": "both"}
    assert plan_move(str(run.id), new.digest, aliases=aliases).forgotten_joins == ()
    move_run(str(run.id), new.digest, aliases=aliases)
    resume_run("t", 1)
    work()
    assert log_of() == ["left", "right=1", "both"]


def test_loop_moves_to_another_bound_by_place(register_only: Any) -> None:
    """Generated ids differ with the bound; call-site, node and iteration do not."""
    old, new = review.build_graph(3), review.build_graph(2)
    register_only(old)
    run = start_run(review.GRAPH_ID, {"count": 0}, thread_id="t")
    register(new, superseded=[old])
    move_run(str(run.id), new.digest)
    assert get_state("t").next_nodes == list(new.blueprint.entry)
    work()
    run = get_run(run.id)
    assert (run.status, run.revision.digest) == ("completed", new.digest)


def test_older_revision_drains_and_is_retired(register_only: Any) -> None:
    old, new = build("a", "b", b=ask), build("a", "x", "b", b=ask)
    register_only(old)
    begun(old, "T")
    assert states() == ["active"]
    register(new, superseded=[old])
    begun(new, "U")
    sweep()
    assert states() == ["draining", "active"]
    resume_run("T", 1)
    work()
    sweep()
    assert states() == ["retired", "active"]
    shown = [facts.state for facts in list_revisions(GRAPH)]
    assert shown == ["retired", "active"]


def test_start_on_an_older_version_lets_it_drain_again(register_only: Any) -> None:
    """Two versions side by side: the newest stays the active one."""
    versions = [
        GraphBuilder(GRAPH, state=State, version=version)
        .add_node("a", ask)
        .add_edge(START, "a")
        .compile()
        for version in ("1.0.0", "2.0.0")
    ]
    register_only(*versions)
    for version in ("1.0.0", "2.0.0"):
        start_run(GRAPH, {}, version=version)
    GraphRevision.objects.filter(version="1.0.0").update(state="retired")
    start_run(GRAPH, {}, version="1.0.0")
    assert states() == ["draining", "active"]


def test_deploy_taken_back_makes_the_older_revision_active(
    register_only: Any,
) -> None:
    old, new = build("a"), build("a", "x")
    register_only(old)
    begun(old, "T")
    register_only(new)
    begun(new, "U")
    register_only(old)
    begun(old, "V")
    assert states() == ["active", "draining"]


def test_changed_body_of_a_handler_is_no_new_revision() -> None:
    """What a function does is not part of the definition; its place is."""
    assert build("a").digest == build("a", a=fail).digest
    assert build("a").digest != build("a", "b").digest
    assert build("a").digest != build("a", state=WithDefault).digest
