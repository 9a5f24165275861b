"""A start that meets the last boundary of the run before, or another start."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import transaction

from stateknot.errors import ThreadBusyError
from stateknot.kernel.vocabulary import RunStatus
from stateknot.storage import DjangoCheckpointer
from tests.blocking import PATIENCE, errors, together, wait_until_one_is_blocked
from tests.storage.hand_driver import HandDriver, admission

pytestmark = pytest.mark.django_db(transaction=True)


def admit(request: Any) -> Any:
    store = DjangoCheckpointer()
    with store.atomic():
        return store.admit(request)


def test_start_behind_an_uncommitted_end_follows_it() -> None:
    """The new run begins behind the boundary that it waited for, not beside it."""
    driver = HandDriver(DjangoCheckpointer())
    written = threading.Event()

    def end() -> None:
        with transaction.atomic():
            driver.commit(status=RunStatus.COMPLETED, of={"pending": ()})
            written.set()
            wait_until_one_is_blocked()

    def start() -> Any:
        assert written.wait(PATIENCE)
        return admit(admission("t"))

    results = together(end, start)
    assert errors(results) == []
    records = DjangoCheckpointer().list_checkpoints("t")
    assert [record.sequence for record in records] == [2, 1, 0]
    assert records[0].parent_id == driver.draft.id


def test_start_behind_an_uncommitted_start_is_refused() -> None:
    HandDriver(DjangoCheckpointer()).commit(status=RunStatus.COMPLETED)
    written = threading.Event()

    def first() -> None:
        with transaction.atomic():
            admit(admission("t"))
            written.set()
            wait_until_one_is_blocked()

    def second() -> None:
        assert written.wait(PATIENCE)
        admit(admission("t"))

    assert errors(together(first, second)) == [ThreadBusyError]
    assert DjangoCheckpointer().last_sequence("t") == 2


def test_starts_of_many_new_threads_do_not_meet() -> None:
    acts = [lambda key=str(n): admit(admission(key)) for n in range(4)]
    assert errors(together(*acts)) == []
