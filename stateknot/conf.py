"""The settings of the engine: one typed object, read at use.

A project writes `STATEKNOT = {...}`; unknown names and values of the wrong type are
refused with the way out by the system check `stateknot.E001`. `get_settings()` gives
the validated object and is reset when a test changes the setting.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

import pydantic
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured
from django.core.signals import setting_changed
from django.dispatch import receiver
from django.utils.module_loading import import_string

from stateknot.kernel.state import describe_errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class EngineSettings(pydantic.BaseModel):
    """What `STATEKNOT` may hold. Durations are seconds."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, strict=True)

    database: str = "default"
    """Alias of the database that holds the engine's tables."""
    lease_seconds: float = pydantic.Field(default=30.0, ge=1)
    """How long a driver holds a run unrenewed; a lost worker's run waits it out."""
    quantum_supersteps: int = pydantic.Field(default=200, ge=1)
    """Supersteps of one drive before a worker gives the run back to the queue."""
    quantum_seconds: float = pydantic.Field(default=60.0, gt=0)
    """Seconds of one drive before a worker gives the run back to the queue."""
    wake_grace_seconds: float = pydantic.Field(default=30.0, ge=0)
    """How long a wake-up may take before the sweep sends another."""
    max_running: dict[str, Annotated[int, pydantic.Field(ge=1)]] = {}
    """Runs of a graph that workers drive at once, by graph id; wins over the code's."""
    max_running_total: int | None = pydantic.Field(default=None, ge=1)
    """Runs of all graphs together that workers drive at once."""
    sweep_batch: int = pydantic.Field(default=500, ge=1)
    """Runs that one sweep wakes at most."""
    schedule_grace_seconds: float = pydantic.Field(default=300.0, ge=0)
    """How late a tick of a schedule may be and still not count as missed."""
    prepared_statements: bool = True
    """Prepare the boundary's statement on PostgreSQL; off behind a pooler that shares
    connections between transactions."""
    worker_lost_limit: int = pydantic.Field(default=3, ge=1)
    """Workers lost in a row at one boundary after which the run fails."""
    usage_provider: str | None = None
    """Dotted path of a function that says what a run used: it gets the run's id and
    gives amounts by name, or None while it cannot tell. Without one the usage that
    nodes reported is added up."""
    object_access: str | None = None
    """Dotted path of the rules that say who may see which thread and do what to it: a
    class or an object with the methods of `stateknot.selectors.access.ObjectAccess`.
    Without one the permissions of Django's models decide alone."""
    idempotency_hours: float = pydantic.Field(default=24.0, gt=0)
    """How long the answer to a request with an idempotency key is kept, at least."""
    issuer: str = "https://stateknot.local"
    """The https URI that this project's graph identities belong to."""
    subject: str = "default"
    """The subject at that issuer."""

    @property
    def heartbeat_seconds(self) -> float:
        """How often a lease is renewed: twice before it could run out."""
        return self.lease_seconds / 3


@lru_cache(maxsize=1)
def get_settings() -> EngineSettings:
    """The engine's settings. Raises ImproperlyConfigured naming each wrong value."""
    given: Any = getattr(django_settings, "STATEKNOT", {})
    try:
        return EngineSettings.model_validate(given)
    except pydantic.ValidationError as error:
        _, text = describe_errors(error)
        raise ImproperlyConfigured(f"STATEKNOT: {text}") from error


def load_usage_provider() -> Callable[[str], Mapping[str, float] | None] | None:
    """The project's usage provider. Raises ImportError for a path of nothing."""
    path = get_settings().usage_provider
    return None if path is None else import_string(path)


@lru_cache(maxsize=1)
def load_object_access() -> Any:
    """The project's object rules, or None. Raises ImportError for a path of nothing."""
    path = get_settings().object_access
    found = None if path is None else import_string(path)
    return found() if isinstance(found, type) else found


@receiver(setting_changed)
def _reset(*, setting: str, **_: Any) -> None:
    if setting == "STATEKNOT":
        get_settings.cache_clear()
        load_object_access.cache_clear()
