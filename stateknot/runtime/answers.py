"""Whether an answer fits its question.

A question's schema is stored as JSON Schema, since the process that answers (the admin,
the API) need not have the code that asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # it has no annotations

from stateknot.errors import AnswerError
from stateknot.kernel.outcome import to_json_value

if TYPE_CHECKING:
    from stateknot.kernel.records import WaitRecord
    from stateknot.kernel.vocabulary import JsonValue


def check_answer(wait: WaitRecord, value: Any) -> JsonValue:
    """The answer as JSON. Raises AnswerError naming what does not fit the schema."""
    answer = to_json_value(value, f"the answer to {wait.node_id!r}")
    if wait.schema is None:
        return answer
    validator = jsonschema.Draft202012Validator(dict(wait.schema))
    problems = sorted(validator.iter_errors(answer), key=lambda error: error.json_path)
    if problems:
        told = "; ".join(f"{e.json_path}: {e.message}" for e in problems[:5])
        raise AnswerError(
            f"the answer to question {wait.id} of node {wait.node_id!r} does not fit "
            f"its schema: {told}"
        )
    return answer
