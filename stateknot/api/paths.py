"""Parts of addresses."""

from __future__ import annotations


class ThreadIdConverter:
    """A thread's id: any characters, slashes and line breaks too, but NUL."""

    regex = r"[^\x00]+"

    def to_python(self, value: str) -> str:
        """The id as it stands."""
        return value

    def to_url(self, value: str) -> str:
        """The id as it stands; Django percent-encodes it."""
        return value
