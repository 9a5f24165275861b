"""Reading a request's JSON: bounded in size and depth before anything looks at it.

Django keeps `DATA_UPLOAD_MAX_MEMORY_SIZE` only for a body that is read whole; REST
framework mostly reads it as a stream, so the bound is kept here as well.
"""

from __future__ import annotations

import codecs
import json
from typing import IO, TYPE_CHECKING, Any, Final, NoReturn

from django.conf import settings
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

if TYPE_CHECKING:
    from collections.abc import Mapping

MAXIMUM_NESTING: Final = 200
"""Levels of a request's JSON: the encoder of stored values ends at 254, and the body
puts some levels around the value."""


class BodyTooLargeError(APIException):
    """Raised for a body over the limit; it is not read to its end."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "body_too_large"

    def __init__(self) -> None:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        super().__init__(
            f"the body has more than {limit:,} bytes (DATA_UPLOAD_MAX_MEMORY_SIZE); "
            "keep large content elsewhere and a reference to it in the state"
        )


class BoundedJSONParser(JSONParser):
    """Parses `application/json`."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """The value. Raises BodyTooLargeError, ParseError with line and column."""
        text = _decode(_read(stream))
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            raise ParseError(
                f"the body is not JSON: {error.msg} (line {error.lineno}, column "
                f"{error.colno})"
            ) from error
        except (ValueError, RecursionError) as error:
            raise ParseError(f"the body cannot be read: {error}") from error
        _check_nesting(value)
        return value


def _read(stream: IO[Any]) -> bytes:
    configured: Any = settings  # the annotation in django-stubs leaves None out
    limit = configured.DATA_UPLOAD_MAX_MEMORY_SIZE
    if limit is None:
        return bytes(stream.read())
    data = bytes(stream.read(limit + 1))
    if len(data) > limit:
        raise BodyTooLargeError
    return data


def _decode(data: bytes) -> str:
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        raise ParseError(f"the body is not UTF-8: {error}") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _check_nesting(value: Any) -> None:
    """Refuse what later recursion could not walk; itself it does not recurse."""
    level = [value]
    for _ in range(MAXIMUM_NESTING):
        if not level:
            return
        level = [item for holder in level for item in _items(holder)]
    raise ParseError(f"the body nests deeper than {MAXIMUM_NESTING} levels")


def _items(holder: Any) -> list[Any]:
    if isinstance(holder, dict):
        return list(holder.values())
    return holder if isinstance(holder, list) else []
