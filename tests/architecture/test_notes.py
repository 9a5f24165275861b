"""Every cited note stands in exactly one place."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from tests.architecture.source_tree import Module, modules

if TYPE_CHECKING:
    from collections.abc import Iterable

WORD = "Note"  # apart from its bracket, so that this file neither defines nor cites
DEFINITION = re.compile(rf'^[ \t]*(?:#[ \t]*|""")?{WORD} \[([^\]\n]+)\]', re.MULTILINE)
CITATION = re.compile(rf"\b[Ss]ee {WORD} \[([^\]]+)\]")
LINE_BREAK = re.compile(r"\s*\n[ \t]*(?:#[ \t]*)?")


def find_note_faults(sources: Iterable[Module]) -> list[str]:
    """Return citations of no note, and titles that several notes share."""
    defined: Counter[str] = Counter()
    cited: list[tuple[str, str]] = []
    for module in sources:
        flat = LINE_BREAK.sub(" ", module.text)
        cited += [(title, module.path) for title in CITATION.findall(flat)]
        # A citation broken before its note looks like a definition.
        rejoined = re.sub(rf"([Ss]ee)\s*\n[ \t#]*{WORD}", rf"\1 {WORD}", module.text)
        defined.update(DEFINITION.findall(rejoined))
    lost = [f"{path} cites {title!r}" for title, path in cited if title not in defined]
    twice = [f"{title!r} is defined {n} times" for title, n in defined.items() if n > 1]
    return lost + twice


def test_note_is_defined_once() -> None:
    assert find_note_faults(modules("stateknot", "project", "tests")) == []


def _faults(*texts: str) -> list[str]:
    return find_note_faults(
        [Module(f"x{i}.py", text.replace("NOTE", WORD)) for i, text in enumerate(texts)]
    )


def test_citation_of_no_note_is_found() -> None:
    assert _faults("# See NOTE [Order]") != []


def test_citation_broken_over_lines_is_found() -> None:
    assert _faults("# as before, see\n# NOTE [Order\n# of folds].") != []


def test_title_defined_twice_is_found() -> None:
    assert _faults("# NOTE [Order]", '"""NOTE [Order]\n"""') != []


def test_citation_of_another_module_resolves() -> None:
    assert _faults("# NOTE [Order]\n# why", "x = 1  # See\n# NOTE [Order]") == []
