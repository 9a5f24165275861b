"""What a request may bring: strict models that name every unknown or wrong key.

Whether a state, an update or an answer fits its graph is for the services to decide.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from stateknot.errors import StateError
from stateknot.kernel.limits import MAXIMUM_SUPERSTEPS
from stateknot.kernel.profile import check_profile

CURRENT = "current"
"""The name of the revision that new runs begin on, where a digest is asked for."""


def _storable(value: Any) -> Any:
    """A value that every database keeps alike; the fault is named by its place."""
    try:
        check_profile(value, "")
    except StateError as error:
        raise PydanticCustomError(
            "unstorable", "{reason}", {"reason": str(error)}
        ) from error
    return value


Text = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_storable)]
JsonObject = Annotated[dict[str, Any], AfterValidator(_storable)]
StepLimit = Annotated[int, Field(ge=1, le=MAXIMUM_SUPERSTEPS)]


class Body(BaseModel):
    """A request's JSON object."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InputBody(Body):
    """An activation of the first superstep; without `node` it enters at START."""

    node: Text | None = None
    payload: Any = None


class StartBody(Body):
    """What a run begins with. Without `thread_id` a new thread is made.

    `on_busy` says what becomes of a start on a thread that another run holds; to
    supersede that run needs the permission to cancel it.
    """

    graph: Text
    state: dict[str, Any]
    thread_id: Text | None = None
    version: Text | None = None
    inputs: list[InputBody] | None = Field(default=None, min_length=1)
    metadata: JsonObject = {}
    on_busy: Literal["reject", "enqueue", "supersede"] = "reject"


class ResumeBody(Body):
    """An answer, or a place to go on from. A `value` of null is an answer too.

    `interrupt_id` names the question; it may be left out while only one is open.
    """

    value: Any = None
    interrupt_id: Text | None = None
    checkpoint_id: Text | None = None
    step_limit: StepLimit | None = None

    @property
    def has_value(self) -> bool:
        """Whether an answer was given, null included."""
        return "value" in self.model_fields_set


class RetryBody(Body):
    """How far a retry may go: `step_limit` raises the run's limit of supersteps.

    `rerun_unknown` runs at-most-once nodes again of which nobody can tell whether they
    acted.
    """

    step_limit: StepLimit | None = None
    rerun_unknown: bool = False


class MoveBody(Body):
    """Where a run goes: `to` is a digest, or `current` for what new runs begin on.

    `aliases` are new names of nodes by the old ones. A dry run only says what would be.
    """

    to: Text
    aliases: dict[Text, Text] = {}
    dry_run: bool = False

    @property
    def digest(self) -> str | None:
        """The digest; None for the current one."""
        return None if self.to == CURRENT else self.to


class CancelBody(Body):
    """Why a run is cancelled, for its journal."""

    reason: Annotated[str, Field(max_length=500), AfterValidator(_storable)] = ""


class AnswerBody(Body):
    """The answer to a question; null is an answer too."""

    value: Any


class ForkBody(Body):
    """What a thread is forked to: a new id without `thread_id`, from `checkpoint_id`
    or, without one, from the newest checkpoint."""

    thread_id: Text | None = None
    checkpoint_id: Text | None = None


class DoneBody(Body):
    """A due node that counts as done, with `update` as its result."""

    node: Text
    update: dict[str, Any] = {}


class EditBody(Body):
    """An update of the newest state; `as_node` makes it that node's result."""

    update: dict[str, Any]
    as_node: Text | None = None


ModelT = TypeVar("ModelT", bound=BaseModel)


class InvalidRequestError(Exception):
    """Raised when a body or a query does not fit; `errors` places each fault."""

    def __init__(self, error: pydantic.ValidationError) -> None:
        found = error.errors(include_url=False, include_context=False)
        self.errors = [
            {"at": ".".join(str(part) for part in e["loc"]), "detail": e["msg"]}
            for e in found[:20]
        ]
        super().__init__("; ".join(_sentence(e) for e in self.errors))


def _sentence(error: dict[str, str]) -> str:
    return f"{error['at']}: {error['detail']}" if error["at"] else error["detail"]


def parse(model: type[ModelT], data: Any) -> ModelT:
    """`data` as `model`. Raises InvalidRequestError naming each key that is wrong."""
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        raise InvalidRequestError(error) from error
