"""From packages to findings: evidence, overrides, and what a file asks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.audit.inputs import Requirement
from project.audit.inspection import find_override, inspect_package, select_required

OWN_TERMS = "Use it on\0Tuesdays,\nand bring cake."


def make_package(directory: Path, name: str, *, terms: str = OWN_TERMS) -> Path:
    path = directory / f"{name}-1.0.dist-info"
    path.mkdir(parents=True)
    metadata = f"Name: {name}\nVersion: 1.0\nLicense: Own terms\n"
    (path / "METADATA").write_text(metadata)
    (path / "LICENSE").write_text(terms)
    return path


def ask(name: str, pin: str = "", marker: str = "") -> Requirement:
    return Requirement(name=name, pin=pin, marker=marker, origin="file:1")


def test_inspect_unknown_terms_keeps_evidence_for_a_person(tmp_path: Path) -> None:
    """What was tried, what the package claims, and how its terms begin."""
    finding = inspect_package(make_package(tmp_path, "demo"))
    assert finding.licence is None
    assert "LICENSE matches no known licence text" in finding.evidence
    assert "its License field says 'Own terms'" in finding.evidence
    assert finding.excerpt == "Use it on Tuesdays, and bring cake."


def test_inspect_tells_equal_terms_from_other_ones(tmp_path: Path) -> None:
    """One question can cover packages of the same terms, and no others."""
    first, second, third = (
        inspect_package(make_package(tmp_path, "first")),
        inspect_package(make_package(tmp_path, "second")),
        inspect_package(make_package(tmp_path, "third", terms="Never.")),
    )
    assert first.wording == second.wording != third.wording


def test_find_override_ignores_spelling() -> None:
    """An operator may write the name as it is known, not as the folder has it."""
    assert find_override("broken_pkg", {"Broken.Pkg": "MIT"}) == "MIT"
    assert find_override("broken_pkg", {"broken": "MIT"}) is None


@pytest.mark.parametrize("pin", ["", "1.0", "1", "1.0.0", "v1.0"])
def test_select_required_finds_the_pinned_version(tmp_path: Path, pin: str) -> None:
    """Versions are equal however many zeros end them."""
    make_package(tmp_path, "demo")
    present, absent = select_required([ask("Demo", pin)], [str(tmp_path)])
    assert [package.name for package in present] == ["demo"]
    assert absent == []


@pytest.mark.parametrize("pin", ["1.1", "10", "2.0"])
def test_select_required_reports_another_version_as_not_installed(
    tmp_path: Path, pin: str
) -> None:
    """The licence of another version says nothing about this one."""
    make_package(tmp_path, "demo")
    present, absent = select_required([ask("demo", pin)], [str(tmp_path)])
    assert present == []
    assert [(f.strategy, f.version) for f in absent] == [("not installed", pin)]
    assert absent[0].evidence == "named in file:1; installed is 1.0"


def test_select_required_reports_an_absent_package_with_its_condition(
    tmp_path: Path,
) -> None:
    """A package that is only for another system is reported with that condition."""
    _present, absent = select_required(
        [ask("pywin32", "306", 'sys_platform == "win32"')], [str(tmp_path)]
    )
    assert absent[0].evidence == 'named in file:1, only if sys_platform == "win32"'
