"""The page that says what moving a run to another revision does, and then does it.

The plan is made anew for each look and once more under the run's lock: nothing is moved
that has a problem, or that stands elsewhere than the page showed. What a plan holds is
decided in `stateknot/runtime/moving.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.http import HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.presenting import join_names
from stateknot.admin.run_verbs import (
    RunVerbView,
    require_fresh,
    require_run_for,
    run_url,
)
from stateknot.admin.tokens import sign_shown
from stateknot.admin.verbs import Verb, list_targets
from stateknot.errors import StateKnotError
from stateknot.services import move_run, plan_move

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from stateknot.models import Run
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.moving import MovePlan
    from stateknot.selectors.run_page import Standpoint

TEMPLATE = "admin/stateknot/run/move.html"
ALIAS = "alias."
"""What stands before the name of a node in the name of its alias's field."""


class MoveForm(forms.Form):
    """Which revision, and new names for due nodes that it does not have."""

    to = forms.ChoiceField(label=gettext_lazy("Revision"))

    def __init__(
        self, data: Any, *, targets: list[CompiledGraph], missing: tuple[str, ...] = ()
    ) -> None:
        super().__init__(data, label_suffix="")
        self.fields["to"].choices = [  # type: ignore[attr-defined]
            (graph.digest, f"{graph.version}  {graph.digest}") for graph in targets
        ]
        chosen = next((g for g in targets if g.digest == self.data.get("to")), None)
        nodes = sorted(chosen.blueprint.nodes) if chosen else []
        for name in dict.fromkeys([*missing, *aliases_of(self.data)]):
            self.fields[f"{ALIAS}{name}"] = forms.ChoiceField(
                label=_("%(node)s goes on at") % {"node": name},
                choices=[("", _("(no node)")), *((node, node) for node in nodes)],
                required=False,
            )


def aliases_of(data: Mapping[str, str]) -> dict[str, str]:
    """The aliases in a form's data, by the old name."""
    given = {key.removeprefix(ALIAS): key for key in data if key.startswith(ALIAS)}
    return {name: data[key] for name, key in given.items() if data[key]}


class MoveView(RunVerbView):
    """Shows the plan, and moves the run on a second click."""

    verb = Verb.MOVE

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """The page with the plan."""
        run = require_run_for(request, self.verb, kwargs["run_id"])
        try:
            self._require_open(run)
            targets = list_targets(run)
            data = {"to": targets[0].digest, **request.GET.dict()}
            aliases = aliases_of(data)
            plan = plan_move(str(run.id), data["to"], aliases=aliases)
        except StateKnotError as error:
            messages.error(request, str(error))
            return HttpResponseRedirect(run_url(run))
        form = MoveForm(data, targets=targets, missing=plan.missing)
        return self._page(request, run, form, plan, aliases)

    def act(
        self, request: HttpRequest, run: Run, at: Standpoint, **kwargs: Any
    ) -> str | HttpResponse:
        """Move the run that the page showed."""
        require_fresh(request, run)
        data = request.POST.dict()
        moved = move_run(
            str(run.id),
            str(data.get("to", "")),
            aliases=aliases_of({k: str(v) for k, v in data.items()}),
            expected_checkpoint_id=str(run.head_id),
            actor=request.user,
        )
        return _("Moved from %(old)s to %(new)s.") % {
            "old": run.revision.digest,
            "new": moved.revision.digest,
        }

    def _page(
        self,
        request: HttpRequest,
        run: Run,
        form: MoveForm,
        plan: MovePlan,
        aliases: dict[str, str],
    ) -> HttpResponse:
        site = self.model_admin.admin_site
        request.current_app = site.name
        context = {
            **site.each_context(request),
            "opts": self.model_admin.opts,
            "media": self.model_admin.media,
            "title": _("Move to another revision"),
            "subtitle": run.thread.key,
            "run": run,
            "form": form,
            "plan": plan,
            "facts": _facts_of(plan),
            "sent": {f"{ALIAS}{old}": new for old, new in aliases.items()},
            "token": sign_shown(run, plan.base.id),
        }
        return TemplateResponse(request, TEMPLATE, context)


def _facts_of(plan: MovePlan) -> list[tuple[str, str]]:
    """What the move does, each with its heading; of the state only names of fields."""
    facts = [
        (_("Renamed nodes"), [f"{old} → {new}" for old, new in plan.renamed.items()]),
        (_("Removed nodes"), plan.removed),
        (_("New nodes"), plan.added),
        (_("Joins that forget what arrived"), plan.forgotten_joins),
        (_("State fields with a new value"), sorted(plan.changes)),
        (_("State fields that are dropped"), plan.dropped),
    ]
    return [(heading, join_names(list(names))) for heading, names in facts if names]
