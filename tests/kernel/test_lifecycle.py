"""The status table, over every pair, and what may be asked of a run when."""

from __future__ import annotations

from itertools import product

import pytest

from stateknot.errors import ResumeError, ThreadBusyError
from stateknot.kernel.lifecycle import (
    may_follow,
    require_can_reopen,
    require_can_write,
    require_resumable,
)
from stateknot.kernel.records import RunRecord
from stateknot.kernel.vocabulary import RunStatus

#: By status before: what each status after is, in the order of `RunStatus`.
TABLE = {
    #             pend run  wait intr clos comp fail canc
    "pending": "     =   x    .    .    .    .    x    x",
    "running": "     x   =    x    x    x    x    x    x",
    "waiting": "     x   x    =    .    .    .    x    x",
    "interrupted": " x   .    .    =    .    .    x    x",
    "closing": "     x   .    .    .    =    .    x    x",
    "completed": "   x   .    .    .    .    =    .    .",
    "failed": "      x   .    .    .    .    .    =    .",
    "cancelled": "   x   .    .    .    .    .    .    =",
}


@pytest.mark.parametrize(("before", "after"), list(product(RunStatus, RunStatus)))
def test_status_follows_as_the_table_says(before: RunStatus, after: RunStatus) -> None:
    mark = TABLE[before].split()[list(RunStatus).index(after)]
    assert may_follow(before, after) is (mark != ".")


@pytest.mark.parametrize("status", RunStatus)
def test_status_holds_its_thread_until_it_is_terminal(status: RunStatus) -> None:
    """Scenario 178."""
    is_over = status in {"completed", "failed", "cancelled"}
    assert status.is_terminal is is_over
    assert status.is_holding is not is_over


def run(run_id: str, status: RunStatus = RunStatus.FAILED) -> RunRecord:
    return RunRecord(
        id=run_id,
        thread_id="t",
        graph_id="g",
        digest="",
        status=status,
        head_id="c",
        sequence=0,
        lineage=0,
        steps=0,
    )


def test_run_at_rest_may_be_reopened() -> None:
    require_can_reopen(run("a"), None, is_driven=False)
    require_can_reopen(run("a"), run("a"), is_driven=False)
    require_can_write(run("a"), is_driven=False)


def test_run_whose_thread_is_held_by_another_is_refused() -> None:
    """Decision 11: a newer run holds the thread."""
    with pytest.raises(ThreadBusyError) as caught:
        require_can_reopen(run("a"), run("b", RunStatus.INTERRUPTED), is_driven=False)
    assert (caught.value.run_id, caught.value.status) == ("b", "interrupted")


def test_driven_run_is_neither_reopened_nor_edited() -> None:
    """Decision 5."""
    driven = run("a", RunStatus.RUNNING)
    with pytest.raises(ThreadBusyError):
        require_can_reopen(driven, driven, is_driven=True)
    with pytest.raises(ThreadBusyError):
        require_can_write(driven, is_driven=True)


def test_thread_without_a_run_is_not_resumable() -> None:
    """Scenario 106."""
    assert require_resumable(run("a"), "t").id == "a"
    with pytest.raises(ResumeError, match="'t'"):
        require_resumable(None, "t")
