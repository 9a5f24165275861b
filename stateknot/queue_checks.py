"""System checks of the queue and the databases that workers use.

Owns which settings of `Q_CLUSTER` and `DATABASES` would lose work, double it, or hang.
The reasons are django-q2's and Django's behaviour, each told in its message. Reads the
settings themselves, since django-q2 copies them once at its import. The engine's own
settings are checked in `checks.py`.
"""

from __future__ import annotations

import math
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from stateknot.conf import get_settings

BROKER = "stateknot.broker.NotifyingBroker"
_RETRY_OF_DJANGO_Q = 60
_SAVED_BY_DJANGO_Q = 250


@register("stateknot")
def check_queue_times(**_: Any) -> list[CheckMessage]:
    """Quantum, `timeout` and `retry` must lie above each other, in this order."""
    queue, quantum = _queue(), _quantum_seconds()
    if queue is None or quantum is None:
        return []
    timeout, retry = queue.get("timeout"), queue.get("retry", _RETRY_OF_DJANGO_Q)
    told = (
        f"Q_CLUSTER has timeout {timeout!r} and retry {retry!r}, and a drive may take"
    )
    told = f"{told} {quantum:g} s (STATEKNOT['quantum_seconds'])"
    if type(timeout) is not int or timeout <= 0:
        return [
            Error(
                f"{told}: without a timeout in whole seconds a node that hangs keeps "
                "its worker for ever.",
                hint="Set Q_CLUSTER['timeout'] above quantum_seconds and above the "
                "longest node, such as 300, and 'retry' above that, such as 330.",
                id="stateknot.E010",
            )
        ]
    if not isinstance(retry, (int, float)) or retry <= timeout:
        return [
            Error(
                f"{told}: a message is handed out again after retry, while it is still "
                "worked on.",
                hint=f"Set Q_CLUSTER['retry'] above 'timeout', such as {timeout + 30}.",
                id="stateknot.E011",
            )
        ]
    if timeout <= quantum:
        return [
            Error(
                f"{told}: a worker is killed before it gives the run back.",
                hint="Set Q_CLUSTER['timeout'] above STATEKNOT['quantum_seconds'].",
                id="stateknot.E012",
            )
        ]
    return []


@register("stateknot")
def check_queue_guard(**_: Any) -> list[CheckMessage]:
    """`guard_cycle` must count `timeout` down to zero, not past it."""
    cycle = (_queue() or {}).get("guard_cycle", 0.5)
    halves = isinstance(cycle, (int, float)) and 0 < cycle <= 1
    if halves and math.frexp(cycle)[0] == 0.5:
        return []
    return [
        Error(
            f"Q_CLUSTER['guard_cycle'] is {cycle!r}: the hard end of a task that hangs "
            "is found by comparing a sum of it with zero, and would never come.",
            hint="Set it to 1, 0.5 or 0.25.",
            id="stateknot.E013",
        )
    ]


@register("stateknot")
def check_queue_mode(**_: Any) -> list[CheckMessage]:
    """Wake-ups must go through a queue, not run in the caller's transaction."""
    if not (_queue() or {}).get("sync"):
        return []
    return [
        Error(
            "Q_CLUSTER['sync'] is on: a run would be driven inside the transaction "
            "that starts it.",
            hint="Remove it. In tests use stateknot.testing.",
            id="stateknot.E014",
        )
    ]


@register("stateknot")
def check_queue_broker(**_: Any) -> list[CheckMessage]:
    """The queue's alias must exist, and our broker needs PostgreSQL."""
    queue = _queue() or {}
    alias, is_ours = queue.get("orm"), queue.get("broker_class") == BROKER
    entry = settings.DATABASES.get(alias or "")
    if alias and entry is None:
        return [
            Error(
                f"Q_CLUSTER['orm'] is {alias!r}, which DATABASES does not have.",
                hint="Name the alias of STATEKNOT['database'], so that a wake-up "
                "belongs to the transaction that caused it.",
                id="stateknot.E015",
            )
        ]
    if is_ours and _vendor(entry) != "postgresql":
        return [
            Error(
                f"Q_CLUSTER['broker_class'] is {BROKER}, and 'orm' is {alias!r}, "
                "which is no PostgreSQL database: it could not be listened on.",
                hint="Name a PostgreSQL alias in 'orm'; on SQLite remove "
                "'broker_class' and set 'poll' to 0.5.",
                id="stateknot.E016",
            )
        ]
    return []


@register("stateknot")
def check_queue_counts(**_: Any) -> list[CheckMessage]:
    """What django-q2 does by default with results, failures and its own memory."""
    queue = _queue()
    if queue is None:
        return []
    workers, limit = queue.get("workers"), queue.get("queue_limit")
    if workers is not None and (type(workers) is not int or workers < 1):
        return [
            Error(
                f"Q_CLUSTER['workers'] is {workers!r}: no process would take work.",
                hint="Set the number of worker processes, 1 or more.",
                id="stateknot.E017",
            )
        ]
    found: list[CheckMessage] = []
    if not limit or limit > 2 * (workers or limit):
        found.append(
            Warning(
                f"Q_CLUSTER['queue_limit'] is {limit!r}: messages wait in the memory "
                "of one cluster while others are idle, and 'retry' runs on.",
                hint="Set it to about the number of 'workers', at most twice that.",
                id="stateknot.W001",
            )
        )
    if not queue.get("ack_failures") and not queue.get("max_attempts"):
        found.append(
            Warning(
                "Q_CLUSTER has neither 'ack_failures' nor 'max_attempts': a message "
                "that fails comes back for ever; the sweep would do it better.",
                hint="Set 'ack_failures' to True and 'max_attempts' to 1.",
                id="stateknot.W002",
            )
        )
    if queue.get("save_limit", _SAVED_BY_DJANGO_Q) >= 0:
        found.append(
            Warning(
                "Q_CLUSTER['save_limit'] keeps results: each message would lock all "
                "kept ones, and the engine has nothing to keep there.",
                hint="Set it to -1.",
                id="stateknot.W003",
            )
        )
    return found


@register("stateknot")
def check_connections(**_: Any) -> list[CheckMessage]:
    """Requests must not hold SQLite's one lock, and kept connections be tested."""
    try:
        alias = get_settings().database
    except ImproperlyConfigured:
        return []
    entry: dict[str, Any] = settings.DATABASES.get(alias) or {}
    if _vendor(entry) == "sqlite" and entry.get("ATOMIC_REQUESTS"):
        return [
            Error(
                f"SQLite database {alias!r} has ATOMIC_REQUESTS: each request would "
                "hold the only write lock from its first line to its last.",
                hint="Set DATABASES[...]['ATOMIC_REQUESTS'] to False.",
                id="stateknot.E018",
            )
        ]
    if _vendor(entry) == "sqlite" or not entry:
        return []
    if entry.get("CONN_MAX_AGE", 0) != 0 and not entry.get("CONN_HEALTH_CHECKS"):
        return [
            Warning(
                f"Database {alias!r} keeps connections without testing them: after a "
                "restart of the server the next piece of work fails as well.",
                hint="Set DATABASES[...]['CONN_HEALTH_CHECKS'] to True.",
                id="stateknot.W004",
            )
        ]
    return []


def check_worker_pool() -> list[CheckMessage]:
    """A cluster forks, and a pool of connections does not survive that.

    Not among the checks of every command: a web process under ASGI may have a pool.
    """
    aliases = [
        alias
        for alias, entry in settings.DATABASES.items()
        if entry.get("OPTIONS", {}).get("pool")
    ]
    return [
        Error(
            f"DATABASES[{alias!r}]['OPTIONS']['pool'] is set, and a worker forks.",
            hint="Set it for web processes only; for workers set CONN_MAX_AGE and "
            "CONN_HEALTH_CHECKS.",
            id="stateknot.E019",
        )
        for alias in aliases
    ]


def _queue() -> dict[str, Any] | None:
    """The queue's settings; None for a project that runs graphs without workers."""
    if not apps.is_installed("django_q"):
        return None
    return dict(getattr(settings, "Q_CLUSTER", {}))


def _quantum_seconds() -> float | None:
    try:
        return get_settings().quantum_seconds
    except ImproperlyConfigured:
        return None


def _vendor(entry: Any) -> str | None:
    """What kind of database an entry of DATABASES is, as far as it is told here."""
    engine = str((entry or {}).get("ENGINE", ""))
    known = ("sqlite", "postgresql", "mysql", "oracle")
    return next(
        (name for name in known if name in engine.replace("postgis", "postgresql")),
        None,
    )
