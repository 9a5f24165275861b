"""System checks of the engine's settings; each names the value and says what to do."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from stateknot.conf import get_settings, load_object_access, load_usage_provider
from stateknot.registry import list_graphs
from stateknot.storage.slots import can_spread


@register("stateknot")
def check_settings(**_: Any) -> list[CheckMessage]:
    """`STATEKNOT` must validate, and name a database that exists."""
    try:
        engine = get_settings()
    except ImproperlyConfigured as error:
        return [
            Error(
                str(error),
                hint="See stateknot.conf.EngineSettings for the names and their units.",
                id="stateknot.E001",
            )
        ]
    if engine.database not in settings.DATABASES:
        known = ", ".join(settings.DATABASES)
        return [
            Error(
                f"STATEKNOT['database'] is {engine.database!r}, DATABASES has {known}.",
                hint="Name one of these aliases.",
                id="stateknot.E002",
            )
        ]
    return []


@register("stateknot")
def check_usage_provider(**_: Any) -> list[CheckMessage]:
    """The usage provider must be importable: a run at its limit would wait for it."""
    try:
        provider: Any = load_usage_provider()
    except ImproperlyConfigured:
        return []
    except ImportError as error:
        told = str(error)
    else:
        if provider is None or callable(provider):
            return []
        told = f"it is a {type(provider).__name__}"
    path = get_settings().usage_provider
    return [
        Error(
            f"STATEKNOT['usage_provider'] is {path!r}: {told}.",
            hint="Give the dotted path of a function that takes a run's id.",
            id="stateknot.E004",
        )
    ]


@register("stateknot")
def check_object_access(**_: Any) -> list[CheckMessage]:
    """Object rules must be importable and whole: without them nobody may see a row."""
    try:
        rules = load_object_access()
    except ImproperlyConfigured:
        return []
    except ImportError as error:
        told = str(error)
    else:
        names = ("visible", "allows")
        missing = [name for name in names if not callable(getattr(rules, name, None))]
        if rules is None or not missing:
            return []
        told = f"it has no method {', '.join(missing)}"
    path = get_settings().object_access
    return [
        Error(
            f"STATEKNOT['object_access'] is {path!r}: {told}.",
            hint="Give the dotted path of a class like "
            "stateknot.selectors.access.ObjectAccess.",
            id="stateknot.E005",
        )
    ]


@register("stateknot")
def check_sqlite(**_: Any) -> list[CheckMessage]:
    """SQLite must begin transactions IMMEDIATE: it has no row locks."""
    try:
        alias = get_settings().database
    except ImproperlyConfigured:
        return []
    database = settings.DATABASES.get(alias, {})
    if not database.get("ENGINE", "").endswith("sqlite3"):
        return []
    mode = database.get("OPTIONS", {}).get("transaction_mode")
    if str(mode).upper() in ("IMMEDIATE", "EXCLUSIVE"):
        return []
    return [
        Error(
            f"SQLite database {alias!r} has transaction_mode {mode!r}: two workers "
            "could read the same row before either writes.",
            hint="Set DATABASES[...]['OPTIONS']['transaction_mode'] to 'IMMEDIATE'.",
            id="stateknot.E003",
        )
    ]


@register("stateknot")
def check_spreading(**_: Any) -> list[CheckMessage]:
    """A graph that spreads its steps should have a database on which it can."""
    try:
        alias = get_settings().database
    except ImproperlyConfigured:
        return []
    if alias not in settings.DATABASES or can_spread(alias):
        return []
    ids = {graph.graph_id for graph in list_graphs() if graph.config.spread}
    return [
        Warning(
            f"graph {graph_id!r} is to spread its steps over workers, but database "
            f"{alias!r} is no PostgreSQL: each step runs in one process.",
            hint="Use PostgreSQL, or with_parallel() without spread=True.",
            id="stateknot.W005",
        )
        for graph_id in sorted(ids)
    ]
