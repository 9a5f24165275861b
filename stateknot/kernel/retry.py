"""Whether and when a failed attempt is tried again.

`RetryPolicy` is what an author sets; `decide_retry` is the decision. The random source
comes in as a number, so that the decision is a function of its arguments. What a
failure is stands in `failure.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final

from stateknot.errors import (
    NodeError,
    NodeFailedError,
    NodeTimeoutError,
    RetryableError,
)

RetryOn = Callable[[BaseException], bool] | type[BaseException] | tuple[Any, ...]

_RETRYABLE_HTTP: Final = frozenset({408, 425, 429})
_RETRYABLE_NAMES: Final = frozenset({"OperationalError", "InterfaceError"})


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a node is tried, and how long between. Durations: seconds or timedelta.

    `max_attempts` counts all tries. The first wait is `initial_interval`, a later one
    `backoff` times longer, never above `maximum_interval`; `jitter` spreads a wait by
    that fraction either way. `retry_on` (a predicate, an exception type or a tuple of
    them) replaces the built-in classification.
    """

    max_attempts: int = 4
    initial_interval: float | timedelta = 0.2
    backoff: float = 2.0
    maximum_interval: float | timedelta = 30.0
    jitter: float = 0.25
    retry_on: RetryOn | None = None

    def admits(self, error: BaseException) -> bool:
        """Whether `error` is of a kind that another attempt may not meet.

        A predicate that fails leaves a note on `error` and admits nothing.
        """
        if self.retry_on is None:
            return is_retryable(error)
        try:
            if isinstance(self.retry_on, (type, tuple)):
                return isinstance(error, self.retry_on)
            return bool(self.retry_on(error))
        except Exception as broken:  # noqa: BLE001 - a predicate may raise anything
            error.add_note(f"retry_on failed, so it is not retried: {broken!r}")
            return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """Try again after `delay_seconds`."""

    delay_seconds: float


def decide_retry(
    policy: RetryPolicy | None, attempts: int, error: BaseException, random: float
) -> RetryDecision | None:
    """The next try after `attempts` tries ended with `error`, or None to give up.

    `random` is in [0, 1). A Retry-After that the error carries is the least wait.
    """
    if policy is None or attempts >= policy.max_attempts or not policy.admits(error):
        return None
    longest = _seconds(policy.maximum_interval)
    try:
        wait = _seconds(policy.initial_interval) * policy.backoff ** (attempts - 1)
    except OverflowError:
        wait = longest
    wait = min(wait * (1 + policy.jitter * (2 * random - 1)), longest)
    return RetryDecision(delay_seconds=max(wait, find_retry_after(error) or 0.0))


def is_retryable(error: BaseException) -> bool:
    """The built-in classification: faults of the world, not of the code.

    Connection errors, a handler's own timeouts, HTTP 408, 425, 429 and 5xx, database
    operational errors, and whatever says so itself. What failed in a child graph counts
    as what it was there.
    """
    error = _innermost(error)
    if isinstance(error, NodeError):
        return error.retryable
    if isinstance(error, NodeTimeoutError):
        return False
    if isinstance(error, (RetryableError, ConnectionError, TimeoutError)):
        return True
    status = _http_status(error)
    if status is not None:
        return status in _RETRYABLE_HTTP or status >= 500
    return any(kind.__name__ in _RETRYABLE_NAMES for kind in type(error).__mro__)


def find_retry_after(error: BaseException) -> float | None:
    """The seconds that the error says to wait at least, or None.

    An HTTP date counts from the response's own `Date`, so that no clock is needed.
    """
    error = _innermost(error)
    own = _attribute(error, "retry_after")
    if isinstance(own, timedelta):
        return _usable(own.total_seconds())
    if isinstance(own, (int, float)):
        return _usable(own)
    headers: Any = _attribute(_attribute(error, "response"), "headers") or {}
    try:
        value = headers.get("Retry-After") or headers.get("retry-after")
        date = headers.get("Date") or headers.get("date")
        return _usable(_parsed(str(value), str(date)))
    except Exception:  # noqa: BLE001 - headers of an unknown client, parsed leniently
        return None


def _innermost(error: BaseException) -> BaseException:
    """The error behind the failures of child graphs, as far as it is at hand."""
    while isinstance(error, NodeFailedError) and error.__cause__ is not None:
        error = error.__cause__
    return error


def _parsed(value: str, date: str) -> float:
    """Seconds of a Retry-After. Raises ValueError or TypeError for what is none."""
    try:
        return float(value)
    except ValueError:
        until, now = parsedate_to_datetime(value), parsedate_to_datetime(date)
        return (until - now).total_seconds()


def _usable(seconds: float) -> float | None:
    return float(seconds) if isfinite(seconds) and seconds >= 0 else None


def _http_status(error: BaseException) -> int | None:
    for source in (error, _attribute(error, "response")):
        for name in ("status_code", "status", "code"):
            value = _attribute(source, name)
            if isinstance(value, int) and 100 <= value <= 599:
                return value
    return None


def _attribute(source: Any, name: str) -> Any:
    """An attribute that may be missing, or a property that raises."""
    try:
        return getattr(source, name, None)
    except Exception:  # noqa: BLE001 - a property may raise anything
        return None


def _seconds(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)
