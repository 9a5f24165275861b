"""The demo's parts that need no server: packages, operator, words, summary."""

from __future__ import annotations

import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from django.contrib.auth import authenticate

from project.audit.demo.locks import FileLock
from project.audit.demo.operator import NAME, reset_operator
from project.audit.demo.packages import make_own_terms, make_unreadable
from project.audit.demo.progress import Look, describe
from project.audit.demo.server import HOST, Place, ServerError, claimed_place, comes_up
from project.audit.demo.summary import summarise
from project.audit.inspection import inspect_package
from project.audit.models import AuditReport
from project.audit.packages import UnreadableMetadataError, list_installed
from stateknot.management.supervision.child import Child, Program
from stateknot.management.supervision.inbox import SignalInbox


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
    first, second = reset_operator(), reset_operator()
    assert authenticate(username=NAME, password=first) is None
    user = authenticate(username=NAME, password=second)
    assert user is not None
    assert user.is_superuser


def test_lock_is_taken_alone_by_one_or_shared_by_many(tmp_path: Path) -> None:
    """Whoever shares it keeps the next one from having it alone."""
    first, second, third = (FileLock(tmp_path / "new" / "lock") for _ in range(3))
    assert first.take_alone()
    assert not second.take_alone()
    first.share()
    second.share()
    assert not third.take_alone()
    first.close()
    second.close()
    assert third.take_alone()
    third.close()


def test_two_demos_claim_two_ports_before_either_listens(tmp_path: Path) -> None:
    """A port is free until its server is up, which takes seconds."""
    with claimed_place(tmp_path) as first, claimed_place(tmp_path) as second:
        assert first.port < second.port
        assert first.log_dir != second.log_dir
    with claimed_place(tmp_path) as third:
        assert third == first


def test_claim_passes_over_a_port_in_use(tmp_path: Path) -> None:
    """Whatever listens there is none of the demo's business."""
    with claimed_place(tmp_path) as place:
        taken = place.port
    with socket.create_server((HOST, taken)), claimed_place(tmp_path) as place:
        assert place.port > taken


def start_and_fail(place: Place) -> Child:
    """Start a program in the server's stead that ends at once."""
    return Child(
        Program(
            name="short-lived",
            argv=[sys.executable, "-c", "raise SystemExit('no luck')"],
            on_orphaned=signal.SIGTERM,
            log=place.log_dir / "up.log",
        )
    )


def test_server_whose_port_was_taken_meanwhile_is_no_failure(tmp_path: Path) -> None:
    """The port was free when it was claimed: the next one is tried."""
    with claimed_place(tmp_path) as place, SignalInbox() as inbox:
        child = start_and_fail(place)
        with socket.create_server((HOST, place.port)):
            assert comes_up(child, place, inbox) is False


def test_server_that_ends_on_a_free_port_is_quoted(tmp_path: Path) -> None:
    """A newcomer reads the reason without opening a log."""
    with claimed_place(tmp_path) as place, SignalInbox() as inbox:
        child = start_and_fail(place)
        with pytest.raises(ServerError, match=r"did not start: no luck \(see up\.log"):
            comes_up(child, place, inbox)


def test_describe_of_an_unchanged_look_is_silent() -> None:
    """Polling prints nothing twice."""
    now = Look(status="running", pending=("inspect",))
    assert describe(now, now) == []


def test_describe_names_what_is_being_done() -> None:
    """The pending nodes, in words."""
    before = Look(status="running", pending=("collect",))
    now = Look(status="running", pending=("inspect",), packages=3)
    (line,) = describe(before, now)
    assert line.startswith("inspecting 3 packages")


def test_describe_counts_while_packages_are_inspected() -> None:
    """A long superstep shows that it moves."""
    before = Look(status="running", pending=("inspect",), packages=300)
    assert describe(before, replace(before, status="pending")) == []
    now = replace(before, inspected=120)
    assert describe(before, now) == ["120 of 300 inspected"]


def test_describe_of_a_retry_says_what_is_left() -> None:
    """Results beside the failed one are kept."""
    before = Look(status="failed", pending=("inspect",), packages=33, inspected=32)
    assert describe(before, replace(before, status="pending")) == [
        "going on: inspecting 1 package again, other results are kept"
    ]


def test_describe_of_a_first_report_tells_inspected_from_absent() -> None:
    """A package that is not installed was not inspected."""
    before = Look(status="running", pending=("inspect",), packages=2)
    now = Look(status="completed", packages=2, inspected=2, absent=1, reported=True)
    assert describe(before, now) == [
        "2 packages inspected, 1 not installed",
        "first report written",
        "the run is completed",
    ]


def test_describe_of_a_failure_says_node_with_error() -> None:
    """The message is the node's own, which tells what to do."""
    now = Look(status="failed", failure="inspect: damaged")
    assert describe(None, now) == ["stopped at inspect: damaged"]


def test_describe_of_an_edited_state_asks_for_the_retry() -> None:
    """The failure is not told again: the person is repairing it."""
    before = Look(status="failed", failure="inspect: damaged")
    now = replace(before, checkpoint="2", edited=True)
    assert describe(before, now) == ["the state was edited; retry the run to go on"]


def test_describe_of_questions_lists_them() -> None:
    """A newcomer sees what will be asked before opening the page."""
    now = Look(status="interrupted", questions=("May MPL-2.0 be used?",))
    assert describe(None, now) == [
        "waiting for a person: 1 question",
        "  May MPL-2.0 be used?",
    ]


def test_describe_of_an_answer_says_what_is_left() -> None:
    """The questions that are left were listed before."""
    before = Look(status="interrupted", questions=("One?", "Two?"))
    between = Look(status="running", pending=("approve",))
    now = replace(before, questions=("Two?",))
    assert describe(between, now, before) == ["answered; 1 question left"]


def test_describe_of_a_new_question_after_an_answer_lists_it() -> None:
    """Refusing a licence may leave another one to be asked about."""
    before = Look(status="interrupted", questions=("One?",))
    now = replace(before, questions=("Two?",))
    assert describe(None, now, before) == [
        "waiting for a person: 1 question",
        "  Two?",
    ]


def test_summary_counts_licences_with_the_rare_ones_together() -> None:
    """Most frequent first, a dozen lines, the rest in one."""
    rows = [{"licence": "MIT", "verdict": "allowed"}] * 3
    rows += [{"licence": "", "verdict": "open"}] * 2
    rows += [{"licence": f"Rare-{n:02}", "verdict": "allowed"} for n in range(14)]
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


def test_summary_of_nothing_installed_names_no_licence() -> None:
    """A package that is not there has no unknown licence."""
    report = AuditReport(
        status="final",
        packages=1,
        open_questions=0,
        by_verdict={"not installed": 1},
        rows=[{"licence": "", "verdict": "not installed"}],
    )
    assert summarise(report)[:2] == [
        "Report (final): 1 package, 1 not installed",
        "Open questions: 0",
    ]
