"""What the OpenAPI document says of every operation: its refusals and its tag."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.openapi import AutoSchema

from stateknot.api.problems import MEDIA_TYPE
from stateknot.api.shapes import Problem

_BODY: Final = ("400", "401", "403", "404", "406", "409", "413", "415", "422")
REFUSALS: Final[dict[str, tuple[str, ...]]] = {
    "GET": ("400", "401", "403", "404", "406"),
    "POST": _BODY,
    "PATCH": (*_BODY, "412", "428"),
}


class ProblemSchema(AutoSchema):
    """Adds the problem documents that a method may answer with."""

    def get_tags(self) -> list[str]:
        """The first word of the address within the API."""
        view: Any = self.view
        return [view.tag]

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        inherited: Any = super()
        bodies: dict[str, Any] = inherited._get_response_bodies(direction)
        for code in REFUSALS.get(self.method, ()):
            bodies[code] = inherited._get_response_for_code(
                Problem, code, [MEDIA_TYPE], direction
            )
        return bodies
