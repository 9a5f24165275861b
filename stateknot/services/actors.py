"""Who does something: a user, a name, or nobody in particular."""

from __future__ import annotations

from typing import Any

_LONGEST = 255


def actor_name(actor: Any) -> str:
    """The name under which an act is journalled: a username, or the text given.

    What no database keeps (NUL, a lone surrogate) is replaced: who acted is noted in
    passing, and must not stop the act.
    """
    if actor is None:
        return ""
    get_username = getattr(actor, "get_username", None)
    name = get_username() if callable(get_username) else str(actor)
    text = str(name).replace("\x00", "?").encode(errors="replace").decode()
    return text[:_LONGEST]
