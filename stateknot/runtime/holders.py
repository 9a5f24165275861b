"""Who holds a lease: a name that is never used twice."""

from __future__ import annotations

import os
import socket


def holder_name(new_id: str) -> str:
    """Host, process, and a part that is unique."""
    return f"{socket.gethostname()}:{os.getpid()}:{new_id}"
