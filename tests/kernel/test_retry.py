"""Whether and when a failed attempt is tried again: decision 9."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.errors import NodeError, NodeTimeoutError, RetryableError
from stateknot.kernel.retry import (
    RetryPolicy,
    decide_retry,
    find_retry_after,
    is_retryable,
)

STEADY = RetryPolicy(jitter=0)
NOW = "Mon, 30 Nov 2026 12:00:00 GMT"


class HttpError(Exception):
    def __init__(self, status: int, **headers: str) -> None:
        super().__init__(status)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = SimpleNamespace(status_code=status, headers=named)


class OperationalError(Exception):
    """Named like the database drivers' own."""


class TouchyError(Exception):
    @property
    def retry_after(self) -> float:
        raise RuntimeError

    @property
    def response(self) -> Any:
        raise RuntimeError


def delays(policy: RetryPolicy, error: Exception, random: float = 0.5) -> list[float]:
    """The waits between all tries that `policy` gives."""
    found = []
    while decision := decide_retry(policy, len(found) + 1, error, random):
        found.append(decision.delay_seconds)
    return found


def test_waits_begin_with_the_initial_interval() -> None:
    """D10: the first wait is the initial interval, not twice that."""
    assert delays(STEADY, RetryableError()) == [0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RetryPolicy(max_attempts=1), []),
        (RetryPolicy(max_attempts=0), []),
        (RetryPolicy(5, 1.0, 3.0, maximum_interval=5.0, jitter=0), [1, 3, 5, 5]),
        (
            RetryPolicy(3, timedelta(minutes=1), maximum_interval=timedelta(hours=1)),
            [60, 120],
        ),
    ],
)
def test_policy_bounds_tries_and_waits(
    policy: RetryPolicy, expected: list[float]
) -> None:
    assert delays(policy, ConnectionError()) == expected


def test_no_policy_tries_once() -> None:
    assert decide_retry(None, 1, RetryableError(), 0.5) is None


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 5000))
def test_wait_is_within_jitter_and_maximum(random: float, attempts: int) -> None:
    """No number of tries overflows."""
    policy = RetryPolicy(max_attempts=10_000)
    decision = decide_retry(policy, attempts, RetryableError(), random)
    assert decision is not None
    assert 0.15 <= decision.delay_seconds <= 30


@pytest.mark.parametrize(
    "error",
    [
        RetryableError(),
        ConnectionResetError(),
        TimeoutError(),
        NodeError("busy", "", retryable=True),
        OperationalError(),
        *(HttpError(status) for status in (408, 425, 429, 500, 503, 599)),
    ],
)
def test_fault_of_the_world_is_retried(error: Exception) -> None:
    assert is_retryable(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        TypeError(),
        NodeTimeoutError("work", 1.0),
        NodeError("no", ""),
        TouchyError(),
        *(HttpError(status) for status in (301, 400, 404, 410, 422)),
    ],
)
def test_fault_of_the_code_is_not_retried(error: Exception) -> None:
    """EX-11."""
    assert not is_retryable(error)
    assert delays(STEADY, error) == []


@pytest.mark.parametrize(
    ("retry_on", "error", "is_admitted"),
    [
        (ValueError, ValueError(), True),
        (ValueError, RetryableError(), False),
        ((KeyError, ValueError), UnicodeError(), True),
        (lambda error: "again" in str(error), TypeError("try again"), True),
        (NodeTimeoutError, NodeTimeoutError("work", 1.0), True),
    ],
)
def test_retry_on_replaces_the_classification(
    retry_on: Any, error: Exception, is_admitted: bool
) -> None:
    assert RetryPolicy(retry_on=retry_on).admits(error) is is_admitted


@pytest.mark.parametrize("retry_on", [lambda error: error.missing, ("no type",)])
def test_predicate_that_fails_admits_nothing_and_is_told(retry_on: Any) -> None:
    """ST-05: a fault in deciding must not hide the fault that is decided on."""
    error = ValueError("the cause")
    assert decide_retry(RetryPolicy(retry_on=retry_on), 1, error, 0.5) is None
    assert "retry_on failed" in error.__notes__[0]


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (RetryableError(retry_after=7), 7),
        (HttpError(429, Retry_After="12"), 12),
        (HttpError(503, retry_after="1.5"), 1.5),
        (HttpError(503, Retry_After="Mon, 30 Nov 2026 12:01:00 GMT", Date=NOW), 60),
        (HttpError(503, Retry_After="Mon, 30 Nov 2026 11:00:00 GMT", Date=NOW), None),
        (HttpError(503, Retry_After="Mon, 30 Nov 2026 12:01:00 GMT"), None),
        (HttpError(503, Retry_After="soon"), None),
        (HttpError(503), None),
        (RetryableError(retry_after=float("nan")), None),
        (RetryableError(retry_after=float("inf")), None),
        (RetryableError(retry_after=-1), None),
        (TouchyError(), None),
        (ValueError(), None),
    ],
)
def test_retry_after_is_found(error: Exception, seconds: float | None) -> None:
    assert find_retry_after(error) == seconds


def test_retry_after_is_the_least_wait() -> None:
    """D10: above the maximum interval as well."""
    assert delays(STEADY, RetryableError(retry_after=99)) == [99, 99, 99]
    assert delays(STEADY, RetryableError(retry_after=0.3)) == [0.3, 0.4, 0.8]


def test_retry_after_as_a_timedelta_is_read() -> None:
    error = RetryableError()
    error.retry_after = timedelta(minutes=1)  # type: ignore[assignment]  # a library's
    assert find_retry_after(error) == 60
