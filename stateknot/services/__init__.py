"""What a user can do. Each verb is one transaction and one journal entry.

`runs` holds the verbs of runs, `cancelling` how they are ended, `state` those of
threads and their state, `revisions` the move of a run to other code, `schedules` what
starts runs by itself.
"""

from stateknot.services.cancelling import cancel_run
from stateknot.services.revisions import move_run, plan_move
from stateknot.services.runs import resume_run, retry_run, start_run
from stateknot.services.state import bulk_update_state, fork_thread, update_state

__all__ = [
    "bulk_update_state",
    "cancel_run",
    "fork_thread",
    "move_run",
    "plan_move",
    "resume_run",
    "retry_run",
    "start_run",
    "update_state",
]
