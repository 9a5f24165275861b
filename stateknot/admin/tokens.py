"""What a form was made from: the checkpoint shown, signed into a hidden field.

A form without it, or with one that was not given out, is refused; one whose run has
moved on meanwhile is stale. See `state_form.py` and `run_verbs.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.core import signing

if TYPE_CHECKING:
    from stateknot.models import Run

_SALT = "stateknot.admin.shown"


def sign_shown(run: Run, checkpoint_id: str) -> str:
    """The token of a form of `run` that shows `checkpoint_id`."""
    return signing.Signer(salt=_SALT).sign(f"{run.id}/{checkpoint_id}")


def read_shown(token: str, run: Run) -> str | None:
    """The checkpoint that a form of `run` showed; None if the token is no good."""
    try:
        text = signing.Signer(salt=_SALT).unsign(token)
    except signing.BadSignature:
        return None
    run_id, _, checkpoint_id = text.partition("/")
    return checkpoint_id if run_id == str(run.id) else None
