"""What a user can ask. Nothing here writes.

`get_` raises NotFoundError or gives None as its docstring says, `list_` gives rows.
"""

from stateknot.selectors.runs import get_run, get_timeline, list_runs
from stateknot.selectors.threads import get_state, get_state_history

__all__ = [
    "get_run",
    "get_state",
    "get_state_history",
    "get_timeline",
    "list_runs",
]
