"""What the OpenAPI document says of every operation: its refusals and its tag."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from stateknot.api.problems import MEDIA_TYPE
from stateknot.api.repeating import HEADER, KEY_LENGTH
from stateknot.api.shapes import Problem

_BODY: Final = ("400", "401", "403", "404", "406", "409", "413", "415", "422")
REFUSALS: Final[dict[str, tuple[str, ...]]] = {
    "GET": ("400", "401", "403", "404", "406"),
    "POST": _BODY,
    "PATCH": _BODY,
}
CONDITIONAL: Final = ("412", "428")


KEY: Final = OpenApiParameter(
    HEADER,
    {"type": "string", "minLength": 1, "maxLength": KEY_LENGTH, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="The same key and request again give the same answer, and do nothing "
    "again. Keys are each user's own.",
)


class ProblemSchema(AutoSchema):
    """Adds the problem documents that a method may answer with."""

    def get_tags(self) -> list[str]:
        """The first word of the address within the API."""
        view: Any = self.view
        return [view.tag]

    def get_override_parameters(self) -> list[Any]:
        """What every request of a method may bring."""
        inherited: Any = super()
        found: list[Any] = inherited.get_override_parameters()
        return [*found, KEY] if self.method == "POST" else found

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        inherited: Any = super()
        bodies: dict[str, Any] = inherited._get_response_bodies(direction)
        view: Any = self.view
        conditional = CONDITIONAL if view.is_conditional else ()
        for code in (*REFUSALS.get(self.method, ()), *conditional):
            bodies[code] = inherited._get_response_for_code(
                Problem, code, [MEDIA_TYPE], direction
            )
        return bodies
