"""Which acts are open: by permission, and by where the run stands.

The page asks here for its buttons, the views ask again before they act, so that a
button that is absent is also refused.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from stateknot.kernel.vocabulary import RunStatus
from stateknot.registry import list_graphs
from stateknot.selectors.access import may
from stateknot.selectors.run_page import find_run_graph

if TYPE_CHECKING:
    from django.http import HttpRequest

    from stateknot.models import Run
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.selectors.run_page import Standpoint


class Verb(StrEnum):
    """An act on a run; the value is the codename of its permission."""

    RETRY = "retry_run"
    RESUME = "resume_run"
    EDIT = "edit_state"
    ANSWER = "answer_wait"
    MOVE = "move_run"
    CANCEL = "cancel_run"


def is_permitted(request: HttpRequest, verb: Verb, run: Run | None = None) -> bool:
    """Whether the user may see runs and has the permission of `verb`, on this one."""
    user = request.user
    if not user.has_perms(["stateknot.view_run", f"stateknot.{verb}"]):
        return False
    return run is None or may(user, verb, run.thread)


def list_offered(request: HttpRequest, run: Run, at: Standpoint | None) -> set[str]:
    """The names of the verbs for which the page has a button, such as "retry"."""
    return {
        verb.name.lower()
        for verb in Verb
        if is_permitted(request, verb, run) and not find_obstacle(verb, run, at)
    }


def find_obstacle(verb: Verb, run: Run, at: Standpoint | None) -> str:
    """Why `verb` cannot be done now, as a sentence; empty if it can.

    Only cancelling needs no checkpoint to stand at.
    """
    if run.namespace:
        return _("This run is part of another one; act on its root run.")
    if verb is Verb.CANCEL:
        return _no_cancel(run)
    if at is None:
        return _("The checkpoint at which the run stands is not there.")
    if run.thread.current_run_id != run.id:
        return _("A newer run stands on this thread; act on that one.")
    match verb:
        case Verb.RETRY:
            return _no_retry(run, at)
        case Verb.RESUME:
            return _no_resume(run, at)
        case Verb.EDIT:
            return _no_edit(run)
        case Verb.ANSWER:
            return "" if at.questions else _("No question of this run is open.")
        case Verb.MOVE:
            return _no_move(run, at)


def _no_cancel(run: Run) -> str:
    if run.is_terminal:
        return _("The run is %(status)s; nothing is left to cancel.") % {
            "status": run.get_status_display()
        }
    if run.cancel_requested_at is not None:
        return _("The run is being cancelled already.")
    return ""


def _no_retry(run: Run, at: Standpoint) -> str:
    if run.status == RunStatus.WAITING:
        return ""  # for a timer or a retry; it is run now
    if run.status != RunStatus.FAILED:
        return _("The run is %(status)s; only a failed run is retried.") % {
            "status": run.get_status_display()
        }
    return "" if at.record.pending else _nothing_due()


def _no_resume(run: Run, at: Standpoint) -> str:
    if at.questions:
        return _("The run waits for an answer; answer its question.")
    if run.status not in (RunStatus.INTERRUPTED, RunStatus.COMPLETED):
        return _("The run is %(status)s; only a paused run is resumed.") % {
            "status": run.get_status_display()
        }
    return "" if at.record.pending else _nothing_due()


def _nothing_due() -> str:
    return _("No node is due at this boundary; mark one as done with an edit first.")


def _no_edit(run: Run) -> str:
    if run.status == RunStatus.RUNNING:
        return _("The run is being driven; edit its state when it stands still.")
    if find_run_graph(run) is None:
        return _("This process does not have the run's revision, which checks edits.")
    return ""


def _no_move(run: Run, at: Standpoint) -> str:
    if run.status == RunStatus.RUNNING:
        return _("The run is being driven; move it when it stands still.")
    if not at.record.pending:
        return _nothing_due()
    if not list_targets(run):
        return _("This process has no other revision of the run's graph.")
    return ""


def list_targets(run: Run) -> list[CompiledGraph]:
    """The revisions that a run can be moved to here, the newest first."""
    found = [g for g in list_graphs() if g.graph_id == run.graph_id]
    return [g for g in reversed(found) if g.digest != run.revision.digest]
