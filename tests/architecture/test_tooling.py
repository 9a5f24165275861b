"""The tools keep the strictness that CONTRIBUTING.md promises."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT

RULES = {"DTZ", "BLE", "DJ", "TRY", "PERF", "ERA", "S", "UP", "SIM", "PT", "B", "F"}


def find_rules_without_reason(text: str) -> list[str]:
    """Return the ruff rules that `pyproject.toml` switches off with no reason beside.

    A reason is a comment on the rule's own line.
    """
    lint = tomllib.loads(text)["tool"]["ruff"]["lint"]
    off = [*lint["ignore"], *chain(*lint.get("per-file-ignores", {}).values())]
    return [rule for rule in off if not re.search(rf'"{rule}",? *# *\w', text)]


def find_unpinned(text: str) -> list[str]:
    """Return requirement lines that do not name one exact version."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and not re.fullmatch(r"\S+==\S+", line)]


def _tools() -> dict[str, Any]:
    tools: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    return tools


def test_ruff_selects_the_promised_rules() -> None:
    ruff = _tools()["ruff"]
    assert set(ruff["lint"]["select"]) >= RULES
    assert ruff["line-length"] == 88


def test_ruff_rule_that_is_off_has_a_reason() -> None:
    assert find_rules_without_reason((ROOT / "pyproject.toml").read_text()) == []


def test_mypy_is_strict_over_the_package() -> None:
    mypy = _tools()["mypy"]
    assert mypy["strict"] is True
    assert "stateknot" in mypy["files"]
    assert "mypy_django_plugin.main" in mypy["plugins"]


def test_package_carries_the_typed_marker() -> None:
    """Without it, type checkers of other projects ignore our annotations."""
    assert (ROOT / "stateknot/py.typed").is_file()


def test_pytest_is_strict() -> None:
    pytest_options = _tools()["pytest"]
    assert pytest_options["strict_markers"] is pytest_options["strict_config"] is True
    assert pytest_options["filterwarnings"][0] == "error"


@pytest.mark.parametrize("name", ["runtime", "dev"])
def test_requirements_are_pinned(name: str) -> None:
    assert find_unpinned((ROOT / f"requirements/{name}.txt").read_text()) == []


def test_development_pins_contain_the_runtime_pins() -> None:
    """`make demo` and `make test` share one environment, so they agree on versions."""
    runtime, dev = (
        set(re.findall(r"^\S+==\S+", (ROOT / path).read_text(), re.MULTILINE))
        for path in ("requirements/runtime.txt", "requirements/dev.txt")
    )
    assert runtime
    assert runtime <= dev


def test_rule_without_reason_is_found() -> None:
    text = '[tool.ruff.lint]\nignore = [\n  "E501",  # why\n  "S101",\n]\n'
    assert find_rules_without_reason(text) == ["S101"]


@pytest.mark.parametrize("line", ["django", "django>=5", "--index-url x"])
def test_unpinned_requirement_is_found(line: str) -> None:
    assert find_unpinned(f"orjson==3\n{line}  # via x") == [line]
