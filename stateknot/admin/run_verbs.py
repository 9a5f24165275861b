"""The acts of the run page: retry, resume, answer, cancel. Each is one POST.

The button is the confirmation: it names what it does and where. A view checks the
permission, that the act is open, and that the form shows where the run still stands;
then it calls one service, which journals the actor. Read `verbs.py` for what is open
when, `edit_view.py` for the act that needs a page of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views import View

from stateknot.admin.answer_form import AnswerForm
from stateknot.admin.tokens import read_shown
from stateknot.admin.verbs import Verb, find_obstacle, is_permitted
from stateknot.errors import NotFoundError, ResumeError, RunError, StateKnotError
from stateknot.kernel.vocabulary import RunStatus
from stateknot.selectors.access import get_visible_run
from stateknot.selectors.run_page import find_standpoint
from stateknot.services import cancel_run, resume_run, retry_run

if TYPE_CHECKING:
    from stateknot.admin.read_only import ReadOnlyAdmin
    from stateknot.models import Run
    from stateknot.selectors.run_page import Standpoint


def run_url(run: Run) -> str:
    """The page of a run."""
    return reverse("admin:stateknot_run_change", args=[run.id])


def require_run_for(request: HttpRequest, verb: Verb, run_id: Any) -> Run:
    """The run, for a user who may do `verb`. Raises PermissionDenied or Http404."""
    if not is_permitted(request, verb):
        raise PermissionDenied
    try:
        run = get_visible_run(request.user, run_id)
    except NotFoundError as error:
        raise Http404(str(error)) from error
    if not is_permitted(request, verb, run):
        raise PermissionDenied
    return run


class RunVerbView(View):
    """One act on a run; `act` does it and returns what to tell.

    An act that is refused changes nothing and says why on the run page.
    """

    verb: ClassVar[Verb]
    model_admin: ReadOnlyAdmin = None  # type: ignore[assignment]  # as_view() sets it

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Lead to the page with the button: a login may have dropped the POST."""
        return HttpResponseRedirect(
            run_url(require_run_for(request, self.verb, kwargs["run_id"]))
        )

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Do it, or say why not."""
        run = require_run_for(request, self.verb, kwargs["run_id"])
        try:
            at = self._require_open(run)
            told = self.act(request, run, at, **kwargs)
        except StateKnotError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(run_url(run))
        if isinstance(told, str):
            self.model_admin.log_change(request, run, told)
            messages.success(request, told)
            return HttpResponseRedirect(run_url(run))
        return told

    def act(
        self, request: HttpRequest, run: Run, at: Standpoint, **kwargs: Any
    ) -> str | HttpResponse:
        """Do it; the sentence is told to the user and kept in the history."""
        raise NotImplementedError

    def _require_open(self, run: Run) -> Standpoint:
        at = find_standpoint(run)
        if at is None:
            raise NotFoundError(f"run {run.id} has lost checkpoint {run.head_id}")
        obstacle = find_obstacle(self.verb, run, at)
        if obstacle:
            raise RunError(obstacle)
        return at


def require_fresh(request: HttpRequest, run: Run) -> None:
    """Refuse a form that shows another place than the one where `run` stands."""
    shown = read_shown(request.POST.get("shown", ""), run)
    if shown is None:
        raise RunError(_("The form was not complete; nothing was done. Try again."))
    if shown != str(run.head_id):
        raise RunError(
            _("The run has moved on since the page was opened; nothing was done.")
        )


class RetryView(RunVerbView):
    """Runs again what failed, or now what waits for its time."""

    verb = Verb.RETRY

    def act(
        self, request: HttpRequest, run: Run, at: Standpoint, **kwargs: Any
    ) -> str | HttpResponse:
        """See the class."""
        require_fresh(request, run)
        limit = _read_limit(request)
        node = run.failed_node
        is_early = run.status == RunStatus.WAITING
        retry_run(
            run.thread.key,
            step_limit=limit,
            rerun_unknown=request.POST.get("rerun_unknown") == "on",
            actor=request.user,
        )
        if is_early:
            return _("Run now; it does not wait any longer.")
        if limit:
            return _("Retried with a limit of %(n)d supersteps.") % {"n": limit}
        return _("Retried at %(node)s.") % {"node": node} if node else _("Retried.")


def _read_limit(request: HttpRequest) -> int | None:
    text = request.POST.get("step_limit", "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:10]) < 10**9):
        raise RunError(_("The superstep limit is a whole number above 0."))
    return int(text)


class ResumeView(RunVerbView):
    """Lets a paused run go on that has no question open."""

    verb = Verb.RESUME

    def act(
        self, request: HttpRequest, run: Run, at: Standpoint, **kwargs: Any
    ) -> str | HttpResponse:
        """See the class."""
        require_fresh(request, run)
        resume_run(run.thread.key, actor=request.user)
        return _("Resumed.")


class CancelView(RunVerbView):
    """Ends a run, or asks its worker to.

    It is bound to no boundary: a run that moved on since the page was opened is still
    the run that was meant.
    """

    verb = Verb.CANCEL

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """See the class; a run without a checkpoint can be ended as well."""
        run = require_run_for(request, self.verb, kwargs["run_id"])
        try:
            obstacle = find_obstacle(self.verb, run, None)
            if obstacle:
                raise RunError(obstacle)
            reason = request.POST.get("reason", "")
            ended = cancel_run(run.id, reason=reason, actor=request.user)
        except StateKnotError as error:
            messages.error(request, str(error))
        else:
            told = (
                _("Cancelled.")
                if ended.is_terminal
                else _("Asked the worker to stop; the run ends with its lease at last.")
            )
            self.model_admin.log_change(request, run, told)
            messages.success(request, told)
        return HttpResponseRedirect(run_url(run))


class AnswerView(RunVerbView):
    """Answers one open question. An invalid answer is shown again, with its errors."""

    verb = Verb.ANSWER

    def act(
        self, request: HttpRequest, run: Run, at: Standpoint, **kwargs: Any
    ) -> str | HttpResponse:
        """See the class."""
        wait_id = str(kwargs["wait_id"])
        wait = next((w for w in at.questions if w.id == wait_id), None)
        if wait is None:
            raise ResumeError(_("this question is not open any more"))
        form = AnswerForm(wait, request.POST)
        if form.is_valid():
            try:
                resume_run(
                    run.thread.key,
                    form.answer(),
                    interrupt_id=wait.public_id,
                    actor=request.user,
                )
            except StateKnotError as error:
                form.add_error(None, str(error))
            else:
                name = wait.key or wait.public_id
                facts = {"node": wait.node_id, "key": name}
                return _("Answered %(key)s of %(node)s.") % facts
        render = self.model_admin.render_run_page  # type: ignore[attr-defined]
        page: HttpResponse = render(request, run, answers={wait.id: form})
        return page
