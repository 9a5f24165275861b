"""How a refusal looks: RFC 9457 problem documents, and the one map to HTTP statuses.

`code` is the stable name that programs compare; `detail` is for people and may change.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework.exceptions import APIException, NotFound
from rest_framework.exceptions import PermissionDenied as Forbidden
from rest_framework.response import Response
from rest_framework.views import set_rollback

from stateknot.api.bodies import InvalidRequestError
from stateknot.api.parsers import BodyTooLargeError
from stateknot.errors import (
    AnswerError,
    GraphError,
    KeyReusedError,
    LeaseError,
    NotFoundError,
    RevisionMoveError,
    RunError,
    SeveralQuestionsError,
    StaleCheckpointError,
    StateError,
    StateKnotError,
    ThreadBusyError,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE = "application/problem+json"

STATUSES: tuple[tuple[type[StateKnotError], HTTPStatus], ...] = (
    (NotFoundError, HTTPStatus.NOT_FOUND),
    (StaleCheckpointError, HTTPStatus.PRECONDITION_FAILED),
    (AnswerError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (SeveralQuestionsError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (StateError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (GraphError, HTTPStatus.BAD_REQUEST),
    (KeyReusedError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (RunError, HTTPStatus.CONFLICT),
    (LeaseError, HTTPStatus.CONFLICT),
)
"""The first family that an error belongs to decides."""


class PreconditionRequiredError(APIException):
    """Raised for an edit that does not say which checkpoint it was made for."""

    status_code = HTTPStatus.PRECONDITION_REQUIRED
    default_code = "precondition_required"


def handle_problem(error: Exception, _context: Mapping[str, Any]) -> Response | None:
    """The problem document of an error; None for one that is a fault of ours."""
    response = _respond(error)
    if response is not None:
        set_rollback()
    return response


def _respond(error: Exception) -> Response | None:
    match error:
        case StateKnotError():
            return _domain_problem(error)
        case InvalidRequestError():
            return problem(
                HTTPStatus.BAD_REQUEST,
                "request.invalid",
                str(error),
                errors=error.errors,
            )
        case RequestDataTooBig():
            return _http_problem(BodyTooLargeError())
        case Http404():
            return _http_problem(NotFound())
        case PermissionDenied():
            return _http_problem(Forbidden())
        case APIException():
            return _http_problem(error)
        case _:
            return None


def problem(
    status: int,
    code: str,
    detail: str,
    *,
    headers: dict[str, str] | None = None,
    **facts: Any,
) -> Response:
    """A problem document; `facts` are members of its own kind."""
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "code": code,
        "detail": detail,
        **facts,
    }
    return Response(body, status=status, headers=headers, content_type=MEDIA_TYPE)


def _domain_problem(error: StateKnotError) -> Response | None:
    status = next((s for kind, s in STATUSES if isinstance(error, kind)), None)
    if status is None:
        return None
    return problem(status, error.code, str(error), **_facts(error))


def _facts(error: StateKnotError) -> dict[str, Any]:
    match error:
        case ThreadBusyError():
            return {"run_id": error.run_id, "run_status": str(error.status)}
        case RevisionMoveError():
            return {
                "expected": error.expected,
                "found": error.found,
                "problems": list(error.problems),
            }
        case StaleCheckpointError():
            return {"expected": error.expected, "found": error.found}
        case SeveralQuestionsError():
            return {"questions": list(error.questions)}
        case StateError():
            return {"path": error.path}
        case GraphError():
            issues = [{"kind": i.kind, "detail": i.message} for i in error.issues]
            return {"kind": error.kind, "issues": issues}
        case _:
            return {}


def _http_problem(error: APIException) -> Response:
    headers = {}
    if challenge := getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = challenge
    if wait := getattr(error, "wait", None):
        headers["Retry-After"] = str(int(wait))
    codes = error.get_codes()
    code = codes if isinstance(codes, str) else error.default_code
    detail = error.detail if isinstance(error.detail, str) else str(error.detail)
    return problem(error.status_code, f"request.{code}", detail, headers=headers)
