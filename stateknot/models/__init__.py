"""The rows of the engine.

`revisions` and `runs` hold what changes (revisions, threads, runs); `history` holds
what never changes once written (checkpoints, closed attempts, closed waits, the
journal).
"""

from stateknot.models.history import Checkpoint, JournalEvent, NodeAttempt, Wait
from stateknot.models.revisions import GraphRevision
from stateknot.models.runs import Run, Thread

__all__ = [
    "Checkpoint",
    "GraphRevision",
    "JournalEvent",
    "NodeAttempt",
    "Run",
    "Thread",
    "Wait",
]
