"""Taking back the writes of a block that failed: how the memory store is all or none.

Every change of a kept object goes through an `Undo`, which remembers how to reverse it.
Knows nothing of what is kept; read `memory.py` for who opens the blocks.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Undo:
    """Changes objects, and changes them back when the block around it raises."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []
        self._depth = 0

    @contextmanager
    def block(self) -> Iterator[None]:
        """Undo what was changed inside if it raises. May be nested."""
        mark = len(self._steps)
        self._depth += 1
        try:
            yield
        except BaseException:
            while len(self._steps) > mark:
                self._steps.pop()()
            raise
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._steps.clear()

    def put(self, mapping: dict[Any, Any], key: Any, value: Any) -> None:
        """Set `mapping[key]`."""
        if key in mapping:
            self._remember(partial(mapping.__setitem__, key, mapping[key]))
        else:
            self._remember(partial(mapping.__delitem__, key))
        mapping[key] = value

    def add(self, items: list[Any], item: Any) -> None:
        """Append to `items`."""
        self._remember(items.pop)
        items.append(item)

    def set(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of `owner`."""
        self._remember(partial(setattr, owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    def _remember(self, step: Callable[[], object]) -> None:
        if self._depth:
            self._steps.append(step)
