"""`?fields=`: only some fields of a state, where a reader does not need the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import ParseError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.api.shapes import Checkpoint


def keep_fields(
    found: Sequence[Checkpoint], wanted: Sequence[str] | None
) -> list[Checkpoint]:
    """The checkpoints with no other fields than `wanted`; with all for None.

    Raises ParseError for a name that none of them has: it may be a typing error, and
    would read as a field without a value.
    """
    if wanted is None:
        return list(found)
    known = {name for checkpoint in found for name in checkpoint.state}
    if found and (unknown := sorted(set(wanted) - known)):
        raise ParseError(
            f"fields names {unknown[0]!r}, which is no field of this state; it has "
            f"{', '.join(sorted(known))}"
        )
    return [_keep(checkpoint, wanted) for checkpoint in found]


def _keep(checkpoint: Checkpoint, wanted: Sequence[str]) -> Checkpoint:
    state = {name: v for name, v in checkpoint.state.items() if name in wanted}
    return checkpoint.model_copy(update={"state": state})
