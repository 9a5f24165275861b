"""A drive that the engine itself cannot do ends as a failed run, not as a loop."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import OperationalError

from stateknot.kernel.vocabulary import RunStatus
from stateknot.runtime.recovery import sweep
from stateknot.runtime.worker import drive_run
from stateknot.selectors import get_run
from stateknot.services import retry_run, start_run
from stateknot.storage import DjangoCheckpointer
from stateknot.tasks import drive
from tests.application.desk import LINE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("desk")]


class Faulty(DjangoCheckpointer):
    """A store whose first commit raises `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error: Exception | None = error

    def commit(self, *arguments: Any) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
        super().commit(*arguments)


def test_fault_of_the_engine_fails_the_run_where_it_stood() -> None:
    run = start_run(LINE, {}, thread_id="t")
    driven = drive_run(Faulty(AssertionError("a bug of ours")), str(run.id))
    assert driven.status is RunStatus.FAILED
    failed = get_run(run.id)
    assert (failed.status, failed.error_code) == ("failed", "runtime.fault")
    assert "a bug of ours" in failed.error["message"]
    assert sweep().woken == 0
    retry_run("t")
    drive(str(run.id))
    assert get_run(run.id).status == "completed"


def test_database_that_was_away_leaves_the_run_to_the_sweep() -> None:
    run = start_run(LINE, {}, thread_id="t")
    with pytest.raises(OperationalError):
        drive_run(Faulty(OperationalError("connection lost")), str(run.id))
    assert get_run(run.id).status == "pending"
    drive(str(run.id))
    assert get_run(run.id).status == "completed"
