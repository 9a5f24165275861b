"""Whose graphs these are: the issuer and subject of every graph's identity.

A project sets them once, at start (the app's `ready`); a process without Django has the
default. They stand in every digest, so two projects' equal graphs stay apart.
"""

from __future__ import annotations

from stateknot.kernel.blueprint_definition import Owner

_owner = Owner()


def current_owner() -> Owner:
    """The owner that graphs of this process belong to."""
    return _owner


def set_owner(owner: Owner) -> None:
    """Let graphs belong to `owner` from now on."""
    global _owner  # one value per process, set at start
    _owner = owner
