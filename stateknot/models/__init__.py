"""The rows of the engine.

`revisions` and `runs` hold what changes (revisions, threads, runs); `history` holds
what never changes once written (checkpoints, closed attempts, closed waits, the
journal); `schedules` what starts runs by itself; `activations` who runs which part of
a superstep that is spread over workers; `requests` what callers were answered.
"""

from stateknot.models.activations import ActivationLease
from stateknot.models.history import Checkpoint, JournalEvent, NodeAttempt, Wait
from stateknot.models.requests import AnsweredRequest
from stateknot.models.revisions import GraphRevision
from stateknot.models.runs import Run, Thread
from stateknot.models.schedules import Schedule

__all__ = [
    "ActivationLease",
    "AnsweredRequest",
    "Checkpoint",
    "GraphRevision",
    "JournalEvent",
    "NodeAttempt",
    "Run",
    "Schedule",
    "Thread",
    "Wait",
]
