"""The audit's state: what the run carries from boundary to boundary.

Everything an operator may edit has a validator that says what is wrong with it. No
logic beyond that; `review.py` reads it, `graphs.py` changes it.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from project.audit.spdx import parse_expression
from stateknot import append

DEFAULT_ALLOWED = (
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "PSF-2.0",
    "Python-2.0",
    "Unlicense",
    "Zlib",
)


def _canonical_expression(text: str) -> str:
    return str(parse_expression(text))


LicenceExpression = Annotated[str, AfterValidator(_canonical_expression)]


class Finding(BaseModel):
    """One package and what was found; `licence` is None where nothing was.

    `strategy` is how: a strategy's name, `override`, `none` or `not installed`.
    `wording` tells packages with the same unknown terms, `excerpt` shows them.
    """

    name: str
    version: str
    licence: str | None = None
    strategy: str
    evidence: str = ""
    wording: str = ""
    excerpt: str = ""


class Decision(BaseModel):
    """A person's answer about a licence that is not on the allow-list."""

    model_config = ConfigDict(title="Decision about a licence")

    decision: Literal["accept", "reject"] = Field(
        description="Whether these packages may be used."
    )
    note: str = Field(default="", max_length=500, description="Why; for the report.")


class NamedDecision(Decision):
    """A person's answer about packages whose licence could not be found."""

    model_config = ConfigDict(title="Decision about unknown terms")

    licence: LicenceExpression = Field(
        default="LicenseRef-Unknown",
        description="What their licence is, such as MIT or LicenseRef-House-Terms.",
    )


class Recorded(Decision):
    """A decision as the state keeps it; `licence` is empty where none was named."""

    licence: str = ""

    @property
    def is_accepted(self) -> bool:
        """Say whether the person allowed it."""
        return self.decision == "accept"


class Report(BaseModel):
    """Where the last report went and what it counts."""

    status: str
    csv: str
    json_file: str
    by_verdict: dict[str, int]
    open_questions: int


class Audit(BaseModel):
    """State of one audit.

    `overrides` gives licences by hand (package name to expression): it is how a package
    with unreadable metadata is repaired, so it stands where an editor begins to read.
    `requirements` is a file's path, empty for the environment itself. `extra_paths` are
    searched after the interpreter's own.
    """

    overrides: dict[str, LicenceExpression] = {}
    requirements: str = ""
    extra_paths: list[str] = []
    allowed: list[str] = list(DEFAULT_ALLOWED)
    findings: Annotated[list[Finding], append] = []
    decisions: dict[str, Recorded] = {}
    report: Report | None = None
