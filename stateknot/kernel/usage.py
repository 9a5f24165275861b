"""What a run has used so far: the sum of its attempts, and whether that is all of it.

Pure. A superstep limit is only recorded with usage that is complete; read
`stateknot/runtime/closing.py` for what happens while it is not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from stateknot.kernel.records import Event
from stateknot.kernel.vocabulary import AttemptStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from stateknot.kernel.records import JournalRecord
    from stateknot.kernel.vocabulary import JsonValue


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Amounts by name. Without `is_complete` something was used that nobody told."""

    amounts: Mapping[str, JsonValue] = field(default_factory=dict)
    is_complete: bool = True


UNKNOWN = Usage(is_complete=False)
CLOSING = "run.closing"
"""The event whose `failure` is recorded once the usage is known."""


def add_up(attempts: Iterable[tuple[str, str, Mapping[str, float] | None]]) -> Usage:
    """The sum over (node, status, usage) of a run's attempts.

    A lost attempt of a node that reports usage elsewhere in the run makes it
    incomplete: what that one used was lost with its worker.
    """
    amounts: dict[str, float] = {}
    reporting, lost = set(), set()
    for node, status, usage in attempts:
        if status == AttemptStatus.LOST:
            lost.add(node)
        if usage:
            reporting.add(node)
        for name, amount in (usage or {}).items():
            amounts[name] = amounts.get(name, 0) + amount
    return Usage(amounts=amounts, is_complete=lost.isdisjoint(reporting))


def find_closing(newest_first: Iterable[JournalRecord]) -> dict[str, JsonValue]:
    """The failure that closed a run, from its journal."""
    for row in newest_first:
        for event in row.events:
            if event.kind == CLOSING:
                return dict(event.data["failure"])
    raise LookupError("a closing run has no journal row that says why")


def settled(run_id: str, error: Mapping[str, JsonValue]) -> Event:
    """What the journal says when a closing run fails."""
    facts = {name: error[name] for name in ("code", "usage")}
    return Event(
        kind="run.failed",
        data={"run_id": run_id, "error": error["message"][:500], **facts},
    )
