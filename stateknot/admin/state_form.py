"""Editing a state as JSON text: what was typed, what it changes, what it collides with.

Compares with the checkpoint that the form was made from, so only fields that the
operator changed are written, and a secret that still reads as its mask is left alone.
Whether values fit the model is the service's to say. Read `edit_view.py` next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.json_text import is_same, parse_json
from stateknot.admin.json_tree import pretty
from stateknot.errors import StateError
from stateknot.kernel.commands import Overwrite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stateknot.kernel.fold import StateFold
    from stateknot.kernel.vocabulary import JsonValue

Values = dict[str, Any]


class StateForm(forms.Form):
    """The text of a state, the checkpoint it was made from, and whom it counts for."""

    shown = forms.CharField(widget=forms.HiddenInput, required=False)
    state = forms.CharField(
        label=gettext_lazy("State"),
        required=False,
        strip=False,
        widget=forms.Textarea(
            attrs={
                "rows": 20,
                "class": "sk-json",
                "spellcheck": "false",
                "autocapitalize": "off",
                "autocomplete": "off",
                "wrap": "off",
            }
        ),
    )
    as_node = forms.ChoiceField(label=gettext_lazy("Effect"), required=False)

    def __init__(
        self,
        data: Any = None,
        *,
        nodes: Sequence[tuple[str, str]],
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, initial=initial, label_suffix="")
        keep = _("Only change the state; what is due stays due")
        self.fields["as_node"].choices = [("", keep), *nodes]  # type: ignore[attr-defined]

    def clean_state(self) -> Values:
        """The typed object. Empty text is an error of its own: it changes nothing."""
        text: str = self.cleaned_data["state"]
        if not text.strip():
            raise ValidationError(
                _("The text is empty. A state has at least its fields."),
                code="required",
            )
        value = parse_json(text)
        if not isinstance(value, dict):
            raise ValidationError(
                _("A state is a JSON object: { … }, with its fields by name."), "object"
            )
        return value


def find_changes(
    typed: Values, shown: Mapping[str, JsonValue], known: Sequence[str]
) -> Values:
    """The fields of `typed` that differ from `shown`, which is masked.

    Raises ValidationError for a field that is gone or that the state does not have.
    """
    gone = [name for name in shown if name not in typed]
    strange = [name for name in typed if name not in shown and name not in known]
    if gone:
        text = _("missing: %s. Put it back; a field has a value, null for none.")
        raise ValidationError(text % ", ".join(gone), code="missing")
    if strange:
        text = _("unknown: %(strange)s. The state has: %(known)s.")
        names = {"strange": ", ".join(strange), "known": ", ".join(known)}
        raise ValidationError(text % names, code="unknown")
    return {
        name: value
        for name, value in typed.items()
        if name not in shown or not is_same(value, shown[name])
    }


def make_update(changes: Values, fold: StateFold) -> Values:
    """The update that makes the changed fields read as typed.

    `Overwrite` keeps an accumulating field from adding the typed list to itself; a
    graph with an update model or a reducer of its own takes plain values.
    """
    values = {name: _typed(name, value, fold) for name, value in changes.items()}
    if fold.reducer is not None or fold.update_codec is not None:
        return values
    return {name: Overwrite(value) for name, value in values.items()}


def _typed(name: str, value: JsonValue, fold: StateFold) -> Any:
    """The value as the field's own type; what has none is refused by the service."""
    if name not in fold.codec.names:
        return value
    try:
        return fold.codec.restore_part(name, value)
    except (StateError, TypeError):
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldConflict:
    """A field that somebody changed meanwhile; `yours` is text or None."""

    name: str
    before: str
    now: str
    yours: str | None


def compare(
    shown: Mapping[str, JsonValue], now: Mapping[str, JsonValue], yours: Values
) -> list[FieldConflict]:
    """What others changed, each beside what the operator wrote for the same field."""
    return [
        FieldConflict(
            name=name,
            before=pretty(shown.get(name)),
            now=pretty(now.get(name)),
            yours=pretty(yours[name]) if name in yours else None,
        )
        for name in dict.fromkeys([*shown, *now])
        if not is_same(shown.get(name), now.get(name))
    ]


def merge(now: Mapping[str, JsonValue], yours: Values) -> str:
    """The text to go on with: the newest state with the operator's changes in it."""
    return pretty({**now, **yours})
