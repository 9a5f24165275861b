"""The words that are stored: enumerations and sentinels."""

from __future__ import annotations

import pytest

from stateknot.kernel.vocabulary import (
    HOLDING_STATUSES,
    TERMINAL_STATUSES,
    UNSET,
    CheckpointSource,
    DurabilityMode,
    RunStatus,
)


@pytest.mark.parametrize("source", list(CheckpointSource))
def test_source_comes_back_from_its_text(source: CheckpointSource) -> None:
    """Scenario 181: in lower case."""
    assert str(source) == str(source).lower()
    assert CheckpointSource.parse(str(source)) is source


@pytest.mark.parametrize("text", [None, "", "LOOP", "unknown"])
def test_unknown_source_is_none(text: str | None) -> None:
    """Scenario 181."""
    assert CheckpointSource.parse(text) is None


def test_every_status_either_holds_its_thread_or_ended() -> None:
    """Scenario 178: a paused run holds its thread, and has not ended."""
    assert set(HOLDING_STATUSES) | TERMINAL_STATUSES == set(RunStatus)
    assert not set(HOLDING_STATUSES) & TERMINAL_STATUSES
    assert not RunStatus.INTERRUPTED.is_terminal


def test_modes_are_plain_strings() -> None:
    assert [DurabilityMode(text) for text in ("sync", "async", "exit")] == list(
        DurabilityMode
    )


def test_nothing_given_is_false_and_itself() -> None:
    assert not UNSET
    assert repr(UNSET) == "UNSET"
