"""Checkpoints and journal rows carry chained digests of what they hold."""

from __future__ import annotations

import hashlib

import pytest

from stateknot.kernel.vocabulary import RunStatus
from stateknot.models import Checkpoint, JournalEvent
from stateknot.storage import DjangoCheckpointer
from tests.storage.hand_driver import HandDriver

pytestmark = pytest.mark.django_db


def chained(domain: bytes, *parts: bytes) -> bytes:
    """The documented form: the domain, then each part behind its length."""
    text = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.sha256(domain + text).digest()


def drive() -> HandDriver:
    driver = HandDriver(DjangoCheckpointer())
    driver.commit(changes={"mark": "x"})
    driver.commit(appends={"log": [1]}, status=RunStatus.FAILED)
    driver.write(changes={"mark": "y"})
    driver.claim_again()
    driver.commit(appends={"log": [2]})
    return driver


def test_checkpoint_digest_is_chained_to_that_of_its_parent() -> None:
    drive()
    digests: dict[object, bytes] = {None: b""}
    for row in Checkpoint.objects.order_by("sequence"):
        parts = [row.changes, row.appends or b"", row.record]
        expected = chained(
            b"stateknot-checkpoint-chain-v1\0",
            digests[row.parent_id],
            *(bytes(part) for part in parts),
        )
        assert bytes(row.digest) == expected
        digests[row.id] = expected
    assert len(digests) == 6


def test_journal_digest_is_chained_to_that_of_the_row_before() -> None:
    driver = drive()
    before = b""
    for row in JournalEvent.objects.filter(run_id=driver.run.id).order_by("number"):
        before = chained(b"stateknot-journal-chain-v1\0", before, bytes(row.events))
        assert bytes(row.digest) == before
    assert before


def test_record_shows_the_digest() -> None:
    driver = drive()
    found = driver.store.find_checkpoint("t")
    row = Checkpoint.objects.get(id=driver.draft.id)
    assert found is not None
    assert found.digest == f"sha256:{bytes(row.digest).hex()}"
