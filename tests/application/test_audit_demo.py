"""The demo's parts that need no server: packages, operator, words, summary."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth import authenticate

from project.audit.demo.operator import reset_operator
from project.audit.demo.packages import make_own_terms, make_unreadable
from project.audit.demo.progress import Look, describe
from project.audit.demo.summary import summarise
from project.audit.inspection import inspect_package
from project.audit.models import AuditReport
from project.audit.packages import UnreadableMetadataError, list_installed


def test_own_terms_are_known_to_no_strategy(tmp_path: Path) -> None:
    """The demo always has a question to ask."""
    package = make_own_terms(tmp_path)
    (installed,) = list_installed([package.directory])
    finding = inspect_package(installed.path)
    assert (finding.name, finding.licence) == ("house-terms", None)
    assert finding.excerpt.startswith("House Terms, version 3 You may run")


def test_unreadable_package_is_listed_yet_cannot_be_read(tmp_path: Path) -> None:
    """The fault is real: the file ends within a character."""
    (installed,) = list_installed([make_unreadable(tmp_path).directory])
    assert installed.name == "unreadable_demo"
    with pytest.raises(UnreadableMetadataError, match="unexpected end of data"):
        inspect_package(installed.path)


def test_demo_packages_are_written_anew_at_a_second_start(tmp_path: Path) -> None:
    """A package repaired on disk is damaged again: each demo begins alike."""
    make_unreadable(tmp_path).metadata.write_text("Name: repaired\n")
    (installed,) = list_installed([make_unreadable(tmp_path).directory])
    with pytest.raises(UnreadableMetadataError):
        inspect_package(installed.path)


@pytest.mark.django_db
def test_operator_gets_a_new_password_at_each_start() -> None:
    """The printed one always works, the one before no longer."""
    name, first = reset_operator()
    same_name, second = reset_operator()
    assert (name, first != second) == (same_name, True)
    assert authenticate(username=name, password=first) is None
    user = authenticate(username=name, password=second)
    assert user is not None
    assert user.is_superuser


def test_describe_of_an_unchanged_look_is_silent() -> None:
    """Polling prints nothing twice."""
    now = Look(status="running", pending=(("inspect", 3),))
    assert describe(now, now) == []


def test_describe_names_what_is_being_done() -> None:
    """The pending nodes, in words."""
    before = Look(status="running", pending=(("collect", 1),))
    now = Look(status="running", pending=(("inspect", 3),))
    (line,) = describe(before, now)
    assert line.startswith("inspecting 3 packages")


def test_describe_of_a_failure_says_node_with_error() -> None:
    """The message is the node's own, which tells what to do."""
    now = Look(status="failed", failure="inspect: damaged")
    assert describe(None, now) == ["stopped: inspect: damaged"]


def test_describe_of_questions_lists_them() -> None:
    """A newcomer sees what will be asked before opening the page."""
    now = Look(status="interrupted", questions=("May MPL-2.0 be used?",))
    assert describe(None, now) == [
        "waiting for a person: 1 question",
        "  May MPL-2.0 be used?",
    ]


def test_summary_counts_licences_with_the_rare_ones_together() -> None:
    """Most frequent first, a dozen lines, the rest in one."""
    rows = [{"licence": "MIT"}] * 3 + [{"licence": ""}] * 2
    rows += [{"licence": f"Rare-{n:02}"} for n in range(14)]
    report = AuditReport(
        status="draft",
        packages=19,
        open_questions=2,
        by_verdict={"allowed": 17, "open": 2},
        rows=rows,
        csv_file="/a.csv",
        json_file="/a.json",
    )
    lines = summarise(report)
    assert lines[0] == (
        "Report (draft, questions are open): 19 packages, 17 allowed, 2 open"
    )
    assert lines[1:3] == ["     3  MIT", "     2  unknown"]
    assert lines[13] == "     4  of 4 other licences"
    assert lines[-3:] == ["Open questions: 2", "CSV:  /a.csv", "JSON: /a.json"]
