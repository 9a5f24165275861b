"""Threads and runs in the project's own database.

`DjangoCheckpointer` is the store; `deltas.py` says how a checkpoint's row makes a
state, `boundary.py` how a superstep is committed.
"""

from stateknot.storage.store import DjangoCheckpointer

__all__ = ["DjangoCheckpointer"]
