"""Collecting the events of a boundary, and telling them live.

An `EventLog` belongs to one drive. What it collected since the last boundary is
journalled with the next one; sinks hear each event as it happens, and a sink that
raises is cut off rather than failing the run.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

from stateknot.kernel.records import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.runtime.config import EventSink

logger = logging.getLogger("stateknot")


class CollectingSink:
    """A sink that keeps every event; `kinds` lists them in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        """The kind of each event, in the order in which they happened."""
        return [event.kind for event in self.events]


def as_sink(sink: Any) -> EventSink:
    """A sink given as a callable, or as an object with `emit`."""
    emit = getattr(sink, "emit", None)
    return emit if callable(emit) else sink  # type: ignore[no-any-return]


class EventLog:
    """Collects events from any thread, in the order in which they were told."""

    def __init__(self, sinks: Sequence[EventSink]) -> None:
        self._sinks = list(sinks)
        self._early: list[Event] | None = []
        self._collected: list[Event] = []
        self._lock = threading.Lock()

    def attach(self, sinks: Sequence[EventSink]) -> None:
        """Pass everything on to `sinks` as well, from the log's first event on.

        Only once, when the run is known; nothing is remembered for it afterwards.
        """
        early, self._early = self._early or [], None
        for sink in sinks:
            self._sinks.append(sink)
            for event in early:
                self._pass(sink, event)

    def tell(
        self,
        kind: str,
        *,
        step: int | None = None,
        node: str | None = None,
        live_only: bool = False,
        **data: Any,
    ) -> None:
        """Collect an event and pass it on; `live_only` keeps it out of the journal."""
        self.pass_on(Event(kind=kind, step=step, node=node, data=data), live_only)

    def pass_on(self, event: Event, live_only: bool = False) -> None:
        """Collect a ready-made event and pass it on."""
        with self._lock:
            if not live_only:
                self._collected.append(event)
            if self._early is not None:
                self._early.append(event)
        for sink in list(self._sinks):
            self._pass(sink, event)

    def _pass(self, sink: EventSink, event: Event) -> None:
        try:
            sink(event)
        except Exception:
            logger.exception("an event sink failed and is cut off")
            if sink in self._sinks:
                self._sinks.remove(sink)

    def take(self) -> tuple[Event, ...]:
        """The events collected since the last call."""
        with self._lock:
            taken, self._collected = tuple(self._collected), []
        return taken

    def put_back(self, events: Sequence[Event]) -> None:
        """Collect again what was taken for a write that was undone."""
        with self._lock:
            self._collected = [*events, *self._collected]
