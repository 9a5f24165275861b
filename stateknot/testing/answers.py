"""Scripted answers: which of a test's answers a question gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stateknot.kernel.commands import Interrupt


class in_turn:  # noqa: N801 - reads as the word it is: in_turn("no", "yes")
    """Answers that are given one after the other; behind the last, none."""

    def __init__(self, *answers: Any) -> None:
        self._left = list(answers)

    def take(self) -> Any:
        """The next answer. Raises LookupError when all were given."""
        if not self._left:
            raise LookupError("every answer was given")
        return self._left.pop(0)


class Script:
    """A test's answers by `node.key`, key or node id, the most exact first.

    An answer is a value, `in_turn(...)`, or a function of the question. `unused` are
    the names that no question has asked for.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = dict(answers)
        self.unused = set(self._answers)

    def pair(self, questions: list[Interrupt]) -> dict[str, Any]:
        """The answers to those of `questions` that have one, by question id."""
        found: dict[str, Any] = {}
        for question in questions:
            name = self._name_for(question)
            if name is None or question.id is None:
                continue
            try:
                found[question.id] = self._answer(name, question)
            except LookupError:
                continue
        return found

    def _name_for(self, question: Interrupt) -> str | None:
        exact = f"{question.node}.{question.key}" if question.key else None
        names = (exact, question.key, question.node)
        return next((name for name in names if name in self._answers), None)

    def _answer(self, name: str, question: Interrupt) -> Any:
        answer = self._answers[name]
        self.unused.discard(name)
        if isinstance(answer, in_turn):
            return answer.take()
        return answer(question) if callable(answer) else answer
