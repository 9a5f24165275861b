"""The form of an open question: fields from its schema, or JSON where that is deep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from stateknot.admin.json_text import parse_json
from stateknot.admin.schema_fields import AnswerField, plan_fields
from stateknot.kernel.vocabulary import UNSET

if TYPE_CHECKING:
    from stateknot.kernel.records import WaitRecord
    from stateknot.kernel.vocabulary import JsonValue

_PREFIX = "answer."


class AnswerForm(forms.Form):
    """Asks for what the schema of `wait` describes; `answer()` is it as JSON."""

    def __init__(self, wait: WaitRecord, data: Any = None) -> None:
        super().__init__(data, label_suffix="", auto_id=f"id_{wait.id}_%s")
        self._plan = plan_fields(wait.schema) if wait.schema else None
        for name, field in (self._plan or {}).items():
            made = field.form_field(name or _("Answer"))
            self.fields[_PREFIX + name] = made
        if self._plan is None:
            self.fields["json"] = _JsonField(is_free=wait.schema is None)

    def answer(self) -> JsonValue:
        """The answer of a valid form."""
        if self._plan is None:
            return self.cleaned_data["json"]
        found = {
            name: _value(field, self.cleaned_data[_PREFIX + name])
            for name, field in self._plan.items()
        }
        given = {name: value for name, value in found.items() if value is not UNSET}
        return given.get("", given)


def _value(field: AnswerField, given: Any) -> Any:
    """An empty input means the default, or, where there is none, no such property."""
    if given not in ("", None):
        return given
    if field.default is UNSET and field.is_required:
        return given
    return field.default


class _JsonField(forms.CharField):
    """Any JSON value."""

    widget = forms.Textarea(
        attrs={"rows": 5, "class": "sk-json", "spellcheck": "false"}
    )

    def __init__(self, *, is_free: bool) -> None:
        help_text = gettext_lazy("A JSON value; text stands in double quotes.")
        label = gettext_lazy("Answer") if is_free else gettext_lazy("Answer as JSON")
        super().__init__(label=label, help_text=help_text, strip=True)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return parse_json(text)
        except ValidationError as error:
            raise ValidationError(
                _("%(problem)s. Text needs double quotes around it."),
                code="json",
                params={"problem": error.messages[0].rstrip(".")},
            ) from error
