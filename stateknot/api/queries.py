"""What an address may ask for: the parameters of its query, each checked by name.

A filter with a typing error would list everything, so an unknown name is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar, get_origin

import pydantic
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from stateknot.api.bodies import Text, parse
from stateknot.kernel.limits import MAXIMUM_SUPERSTEPS
from stateknot.kernel.vocabulary import RunStatus, WaitStatus

if TYPE_CHECKING:
    from rest_framework.request import Request


class Query(BaseModel):
    """The parameters of an address; they come as text, so they are not strict."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _pair(text: str) -> str:
    name, colon, _ = text.partition(":")
    if not (name and colon):
        raise ValueError("write it as name:value")
    return text


MetadataPair = Annotated[Text, AfterValidator(_pair), Field(pattern="^[^:]+:")]


class PageQuery(Query):
    """Which page of a list."""

    cursor: str | None = None
    limit: int = Field(default=50, ge=1, le=200)


class RunQuery(PageQuery):
    """Which runs to list. `metadata` is `name:value`, and may be given again."""

    graph: Text | None = None
    status: RunStatus | None = None
    thread_id: Text | None = None
    failed_node: Text | None = None
    root_run_id: pydantic.UUID7 | None = None
    since: AwareDatetime | None = None
    metadata: list[MetadataPair] = []


class ThreadQuery(PageQuery):
    """Which threads to list; status and metadata are those of the current run."""

    graph: Text | None = None
    status: RunStatus | None = None
    since: AwareDatetime | None = None
    metadata: list[MetadataPair] = []


class QuestionQuery(PageQuery):
    """Which questions to list."""

    graph: Text | None = None
    thread_id: Text | None = None
    status: WaitStatus = WaitStatus.OPEN
    since: AwareDatetime | None = None


class StateQuery(Query):
    """Which fields of the state to show, with commas between; all without it."""

    fields: Text | None = None

    @property
    def wanted(self) -> list[str] | None:
        """The names; None for all."""
        return None if self.fields is None else self.fields.split(",")


class HistoryQuery(StateQuery):
    """Which checkpoints to list: those behind `before`, newest first."""

    before: pydantic.UUID7 | pydantic.UUID4 | None = None
    limit: int = Field(default=20, ge=1, le=100)


class JournalQuery(Query):
    """Which journal rows to list: those with a number above `after`, oldest first."""

    after: int = Field(default=-1, ge=-1, le=MAXIMUM_SUPERSTEPS)
    limit: int = Field(default=100, ge=1, le=500)


QueryT = TypeVar("QueryT", bound=Query)


def read_query(model: type[QueryT], request: Request) -> QueryT:
    """The parameters of `request`. Raises InvalidRequestError naming each wrong one."""
    given = request.query_params
    fields = model.model_fields
    lists = {n for n, field in fields.items() if get_origin(field.annotation) is list}
    return parse(
        model, {n: given.getlist(n) if n in lists else given[n] for n in given}
    )


def split_pairs(pairs: list[str]) -> list[tuple[str, str]]:
    """Names and values of `name:value`; only the first colon parts them."""
    return [(name, value) for name, _, value in (p.partition(":") for p in pairs)]
