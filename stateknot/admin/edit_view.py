"""The page on which a state is edited, and the page that a stale edit leads to.

Note [An edit names what it saw]
    The form carries the signed id of the checkpoint it was made from. The edit is the
    difference between that checkpoint and the text, and the service writes it only on
    top of that very checkpoint. When somebody was faster, the operator gets a new form:
    the newest state with the operator's own changes in it, and the other's beside it.
    So a second click can overwrite a field only where both wrote it, in plain sight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views import View

from stateknot.admin.json_tree import pretty
from stateknot.admin.run_verbs import require_run_for, run_url
from stateknot.admin.state_form import (
    FieldConflict,
    StateForm,
    compare,
    find_changes,
    make_update,
    merge,
)
from stateknot.admin.tokens import read_shown, sign_shown
from stateknot.admin.verbs import Verb, find_obstacle
from stateknot.errors import (
    GraphError,
    StaleCheckpointError,
    StateError,
    StateKnotError,
)
from stateknot.selectors.masking import show_values
from stateknot.selectors.run_page import Standpoint, find_run_graph, find_standpoint
from stateknot.services import update_state

if TYPE_CHECKING:
    from stateknot.admin.read_only import ReadOnlyAdmin
    from stateknot.models import Checkpoint, Run
    from stateknot.runtime.graph import CompiledGraph

TEMPLATE = "admin/stateknot/run/edit.html"


class EditView(View):
    """Shows the state as text and saves what was changed in it."""

    model_admin: ReadOnlyAdmin = None  # type: ignore[assignment]  # as_view() sets it

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """The form, made from where the run stands."""
        run = require_run_for(request, Verb.EDIT, kwargs["run_id"])
        page = _EditPage(self.model_admin, request, run)
        if page.obstacle:
            return page.leave(page.obstacle)
        return page.show(page.new_form(request.GET.get("as_node", "")))

    def post(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """Save, or show the text again with what is wrong with it."""
        run = require_run_for(request, Verb.EDIT, kwargs["run_id"])
        page = _EditPage(self.model_admin, request, run)
        if page.obstacle:
            return page.reject(page.obstacle)
        return page.save()


class _EditPage:
    """One request's edit of one run."""

    def __init__(self, admin: ReadOnlyAdmin, request: HttpRequest, run: Run) -> None:
        self.admin, self.request, self.run = admin, request, run
        self.head = find_standpoint(run)
        self.graph = find_run_graph(run)
        self.obstacle = ""
        if self.head is None:
            self.obstacle = _("The run's checkpoint is missing.")
        else:
            self.obstacle = find_obstacle(Verb.EDIT, run, self.head)

    @property
    def compiled(self) -> CompiledGraph:
        """The run's graph, which is here: `obstacle` says so otherwise."""
        assert self.graph is not None  # noqa: S101  (narrows the type)
        return self.graph

    def values(self, at: Standpoint) -> dict[str, Any]:
        """The state at a checkpoint as the form shows it."""
        return show_values(at.record.values, self.compiled.blueprint.fold.codec)

    def new_form(self, as_node: str = "") -> StateForm:
        """A form of the newest state."""
        assert self.head is not None  # noqa: S101  (narrows the type)
        initial = {
            "shown": sign_shown(self.run, self.head.record.id),
            "state": pretty(self.values(self.head)),
            "as_node": as_node,
        }
        return StateForm(initial=initial, nodes=self._nodes(self.head))

    def _nodes(self, at: Standpoint) -> list[tuple[str, str]]:
        """The nodes that an edit can mark as done: due, and not routing by goto."""
        due = at.record.next_nodes
        specs = self.compiled.blueprint.nodes
        choices = []
        for node in dict.fromkeys(due):
            if node not in specs or specs[node].is_command:
                continue
            count = due.count(node)
            label = _("Mark %(node)s as done with this update") % {"node": node}
            if count > 1:
                label += _(" (all %(n)d of its activations)") % {"n": count}
            choices.append((node, label))
        return choices

    def save(self) -> HttpResponse:
        """See Note [An edit names what it saw]."""
        shown_id = read_shown(self.request.POST.get("shown", ""), self.run)
        shown = find_standpoint(self.run, shown_id) if shown_id else None
        if shown is None:
            return self.reject(
                _("The form did not say which state it shows, so nothing was saved.")
            )
        form = StateForm(self.request.POST, nodes=self._nodes(shown))
        if not form.is_valid():
            return self.show(form)
        codec = self.compiled.blueprint.fold.codec
        try:
            changes = find_changes(
                form.cleaned_data["state"], self.values(shown), codec.names
            )
        except ValidationError as error:
            form.add_error("state", error)
            return self.show(form)
        as_node = form.cleaned_data["as_node"] or None
        if not changes and as_node is None:
            messages.info(self.request, _("Nothing was changed, so nothing was saved."))
            return HttpResponseRedirect(run_url(self.run))
        return self._write(form, shown, changes, as_node)

    def _write(
        self,
        form: StateForm,
        shown: Standpoint,
        changes: dict[str, Any],
        as_node: str | None,
    ) -> HttpResponse:
        try:
            written = update_state(
                self.run.thread.key,
                make_update(changes, self.compiled.blueprint.fold),
                as_node=as_node,
                expected_checkpoint_id=shown.record.id,
                actor=self.request.user,
            )
        except StaleCheckpointError:
            return self._conflict(form, shown, changes)
        except StateError as error:
            form.add_error("state", str(error))
        except GraphError as error:
            form.add_error("as_node", str(error))
        except StateKnotError as error:
            form.add_error(None, str(error))
        else:
            return self._tell(changes, as_node, shown, written)
        return self.show(form)

    def _tell(
        self,
        changes: dict[str, Any],
        as_node: str | None,
        shown: Standpoint,
        written: Checkpoint,
    ) -> HttpResponse:
        told = _("Edited %s.") % (", ".join(sorted(changes)) or _("no field"))
        if as_node:
            told += " " + _("Marked %s as done.") % as_node
        self.admin.log_change(
            self.request, self.run, f"{told} {shown.record.id} → {written.id}"
        )
        messages.success(self.request, told)
        return HttpResponseRedirect(run_url(self.run))

    def _conflict(
        self, form: StateForm, shown: Standpoint, changes: dict[str, Any]
    ) -> HttpResponse:
        self.run.refresh_from_db()
        self.head = find_standpoint(self.run) or shown
        before, now = self.values(shown), self.values(self.head)
        again = self.new_form(form.cleaned_data["as_node"])
        again.initial["state"] = merge(now, changes)
        return self.show(again, conflicts=compare(before, now, changes), status=409)

    def show(
        self,
        form: StateForm,
        *,
        conflicts: list[FieldConflict] | None = None,
        status: int = 200,
    ) -> HttpResponse:
        """The page with the form; `conflicts` are there after a stale edit."""
        is_stale = conflicts is not None
        return self._render(
            status, form=form, is_stale=is_stale, conflicts=conflicts or []
        )

    def reject(self, reason: str) -> HttpResponse:
        """Refuse, with the typed text to copy but no form that could save it."""
        text = self.request.POST.get("state", "")
        return self._render(409, reason=reason, typed=text)

    def leave(self, reason: str) -> HttpResponse:
        """Go back to the run, saying why its state cannot be edited."""
        messages.error(self.request, reason)
        return HttpResponseRedirect(run_url(self.run))

    def _render(self, status: int, **context: Any) -> HttpResponse:
        site = self.admin.admin_site
        self.request.current_app = site.name
        common = {
            **site.each_context(self.request),
            "opts": self.admin.opts,
            "run": self.run,
            "head": self.head,
            "title": _("Edit state"),
            "subtitle": self.run.thread.key,
            "media": self.admin.media,
        }
        return TemplateResponse(
            self.request, TEMPLATE, {**common, **context}, status=status
        )
