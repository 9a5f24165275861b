"""JSON given to a command: as an argument, as `-` (standard input) or as `@file`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from django.core.management.base import CommandError

from stateknot.management.exit_codes import ExitCode


def read_json(given: str, name: str) -> Any:
    """The value of `given`. Raises CommandError with line and column of bad JSON."""
    text, where = _read(given, name)
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        _fail(
            f"{where} is not JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}{_pointer(text, error)}"
        )
    except (ValueError, RecursionError) as error:
        _fail(f"{where} cannot be read: {error}")


def read_object(given: str, name: str) -> dict[str, Any]:
    """The JSON object of `given`. Raises CommandError for any other value."""
    value = read_json(given, name)
    if not isinstance(value, dict):
        _fail(f"{name} is a JSON object such as '{{\"order_id\": 7}}', not {given!r}")
    return value


def _read(given: str, name: str) -> tuple[str, str]:
    if given == "-":
        return sys.stdin.read(), f"{name} (standard input)"
    if not given.startswith("@"):
        return given, name
    path = Path(given[1:])
    try:
        return path.read_text(encoding="utf-8-sig"), f"{name} ({path})"
    except (OSError, UnicodeDecodeError, ValueError) as error:
        _fail(f"{name}: {path} cannot be read: {error}")


def _pointer(text: str, error: json.JSONDecodeError) -> str:
    """The faulty line with a mark below the place, where that helps to see it."""
    line = text.splitlines()[error.lineno - 1] if text.strip() else ""
    if not line or len(line) > 120 or not line.isprintable():
        return ""
    return f"\n  {line}\n  {' ' * (error.colno - 1)}^"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _fail(text: str) -> NoReturn:
    raise CommandError(text, returncode=ExitCode.USAGE)
