"""The whole audit, in this process: failure, repair, questions, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from project.audit.demo.packages import make_own_terms, make_unreadable
from project.audit.graphs import graph
from project.audit.models import AuditReport
from project.audit.state import Audit
from stateknot import Command, CompiledGraph, MemoryCheckpointer
from stateknot.errors import NodeFailedError
from stateknot.storage import DjangoCheckpointer

pytestmark = pytest.mark.django_db(transaction=True)

THREAD = "audit-test"
ACCEPT = {"decision": "accept", "note": "fine"}
REJECT = {"decision": "reject", "licence": "LicenseRef-House-Terms"}


@pytest.fixture(params=[MemoryCheckpointer, DjangoCheckpointer])
def audit_graph(request: pytest.FixtureRequest, tmp_path: Path, settings: Any) -> Any:
    """The graph over either store, its reports in a directory of the test."""
    settings.AUDIT_REPORT_DIR = tmp_path / "reports"
    return graph.with_checkpointer(request.param())


def start_state(directory: Path, *names: str) -> Audit:
    packages = [make_own_terms(directory), make_unreadable(directory)]
    file = directory / "requirements.txt"
    file.write_text("\n".join(names))
    return Audit(
        requirements=str(file), extra_paths=[str(p.directory) for p in packages]
    )


def run_to_questions(compiled: CompiledGraph, state: Audit) -> dict[str, str]:
    """Run to the pause; returns question keys with their ids."""
    execution = compiled.run_with_thread(THREAD, state)
    assert execution.is_interrupted
    return {question.key: question.id for question in execution.interrupts}


def test_audit_without_questions_ends_after_one_report(
    audit_graph: CompiledGraph, tmp_path: Path
) -> None:
    """Nobody is asked where every licence is allowed."""
    execution = audit_graph.run_with_thread(
        THREAD, start_state(tmp_path, "sqlparse", "absent==1.0")
    )
    assert execution.status == "completed"
    assert execution.visited == ["collect", "inspect", "draft"]
    assert execution.state.report.by_verdict == {"allowed": 1, "not installed": 1}
    assert AuditReport.objects.get().status == "final"


def test_audit_of_no_package_completes(
    audit_graph: CompiledGraph, tmp_path: Path
) -> None:
    """An empty fan-out joins as well."""
    execution = audit_graph.run_with_thread(THREAD, start_state(tmp_path))
    assert execution.status == "completed"
    assert AuditReport.objects.get().packages == 0


def test_audit_waits_with_a_draft_until_every_question_is_answered(
    audit_graph: CompiledGraph, tmp_path: Path
) -> None:
    """Each answer is bound to its question; the last one brings the final report."""
    questions = run_to_questions(
        audit_graph, start_state(tmp_path, "house-terms", "psycopg", "sqlparse")
    )
    assert set(questions) == {"licence:LGPL-3.0-only", "package:house-terms"}
    assert AuditReport.objects.get().open_questions == 2
    first = {questions["package:house-terms"]: REJECT}
    assert audit_graph.resume(THREAD, Command(answers=first)).is_interrupted
    second = {questions["licence:LGPL-3.0-only"]: ACCEPT}
    execution = audit_graph.resume(THREAD, Command(answers=second))
    assert execution.status == "completed"
    row = AuditReport.objects.get()
    assert (row.status, row.open_questions) == ("final", 0)
    assert row.by_verdict == {"allowed": 1, "accepted": 1, "rejected": 1}
    document = json.loads(Path(row.json_file).read_text())
    notes = {package["package"]: package["note"] for package in document["packages"]}
    assert notes["psycopg"] == "fine"


def test_audit_stops_at_an_unreadable_package_until_the_state_is_edited(
    audit_graph: CompiledGraph, tmp_path: Path
) -> None:
    """The failure says what to write into the state; a retry then goes on."""
    state = start_state(tmp_path, "sqlparse", "unreadable-demo", "pydantic")
    with pytest.raises(NodeFailedError) as caught:
        audit_graph.run_with_thread(THREAD, state)
    assert caught.value.node_id == "inspect"
    assert caught.value.code == "audit.metadata_unreadable"
    assert '"overrides": {"unreadable_demo": "MIT"}' in str(caught.value)
    audit_graph.update_state(THREAD, {"overrides": {"unreadable_demo": "MIT"}})
    execution = audit_graph.retry(THREAD)
    assert execution.status == "completed"
    rows = {row["package"]: row for row in AuditReport.objects.get().rows}
    assert rows["unreadable_demo"]["strategy"] == "override"
    assert len(rows) == 3


def test_audit_of_an_input_that_is_gone_fails_with_the_way_out(
    audit_graph: CompiledGraph, tmp_path: Path
) -> None:
    """The file may vanish between start and run."""
    with pytest.raises(NodeFailedError, match="cannot be read") as caught:
        audit_graph.run_with_thread(
            THREAD, Audit(requirements=str(tmp_path / "gone.txt"))
        )
    assert caught.value.code == "audit.input_unreadable"
