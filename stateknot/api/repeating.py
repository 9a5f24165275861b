"""`Idempotency-Key`: a POST that is sent again is answered again, and not done again.

Keys are each user's own. What makes two requests the same is their address and their
JSON; storing the answer is `services/repeats.py`.
"""

from __future__ import annotations

import json
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from rest_framework.exceptions import ParseError
from rest_framework.response import Response

from stateknot.selectors.access import find_thread
from stateknot.services.repeats import Answer, answer_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from rest_framework.request import Request

    ViewP = ParamSpec("ViewP")
    Handler = Callable[Concatenate[Any, Request, ViewP], Response]

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotency-Replayed"
KEY_LENGTH: Final = 255
_KEPT: Final = ("Location", "ETag")


def repeatable(handler: Handler[ViewP]) -> Handler[ViewP]:
    """Let a POST be repeated under a key."""

    @wraps(handler)
    def post(
        view: Any, request: Request, /, *args: ViewP.args, **kwargs: ViewP.kwargs
    ) -> Response:
        key = _read_key(request)
        if key is None:
            return handler(view, request, *args, **kwargs)
        fresh: list[Response] = []

        def act() -> Answer:
            fresh.append(handler(view, request, *args, **kwargs))
            return _keep(fresh[0])

        scope = f"user:{request.user.pk}"
        answer = answer_once(scope, key, _identity(request), act)
        return _repeat(request, answer) if answer.is_repeated else fresh[0]

    return post


def _read_key(request: Request) -> str | None:
    key = request.headers.get(HEADER)
    if key is None:
        return None
    if not 0 < len(key) <= KEY_LENGTH or not key.isascii() or not key.isprintable():
        raise ParseError(f"{HEADER} takes 1 to {KEY_LENGTH} printable ASCII characters")
    return str(key)


def _identity(request: Request) -> bytes:
    """Address and body; spaces and the order of keys make no difference."""
    asked = [request.path, request.META.get("QUERY_STRING", ""), request.data]
    return json.dumps(asked, sort_keys=True).encode()


def _keep(response: Response) -> Answer:
    told = response.data
    about = told.get("run", told)
    return Answer(
        status=response.status_code,
        body=json.dumps(told).encode(),
        headers={name: response[name] for name in _KEPT if response.has_header(name)},
        thread_key=about.get("thread_id", "") if isinstance(about, dict) else "",
    )


def _repeat(request: Request, answer: Answer) -> Response:
    """The answer again. Raises NotFoundError if its thread may not be seen any more."""
    if answer.thread_key:
        find_thread(request.user, answer.thread_key)
    headers = {**answer.headers, REPLAYED: "true"}
    return Response(json.loads(answer.body), status=answer.status, headers=headers)
