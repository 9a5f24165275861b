"""The admin: what operators see, and the acts they may do from it.

Owns pages and forms only: what is asked goes to `stateknot/selectors/`, what is done to
`stateknot/services/`. Django imports this package when it looks for admins; start with
`runs.py`, then `run_page.py` for the page and `verbs.py` for who may do what when.
"""

from stateknot.admin.questions import QuestionAdmin
from stateknot.admin.revisions import RevisionAdmin
from stateknot.admin.runs import RunAdmin
from stateknot.admin.schedules import ScheduleAdmin
from stateknot.admin.threads import ThreadAdmin

__all__ = [
    "QuestionAdmin",
    "RevisionAdmin",
    "RunAdmin",
    "ScheduleAdmin",
    "ThreadAdmin",
]
