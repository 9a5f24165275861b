"""The graph `project.audit`: collect, inspect each package, ask, report.

Read it top to bottom: each function is a node, the edges stand at the end. The nodes
decide nothing themselves; see `inspection.py`, `review.py` and `report.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from project.audit.inputs import InputFileError, read_requirements
from project.audit.inspection import find_override, inspect_package, select_required
from project.audit.packages import UnreadableMetadataError, list_installed
from project.audit.report import write_report
from project.audit.review import list_questions
from project.audit.state import Audit, Decision, Finding, Recorded
from stateknot import END, START, Command, GraphBuilder, Interrupt, NodeContext, Send
from stateknot.errors import NodeError
from stateknot.registry import register

CONCURRENT_INSPECTIONS = 4

builder = GraphBuilder(
    "project.audit", state=Audit, version="1.0.0", name="Licence audit"
)


def collect(audit: Audit) -> Command:
    """List the packages and send each one to an inspection of its own."""
    search_path = [*sys.path, *audit.extra_paths]
    absent: list[Finding] = []
    if audit.requirements:
        try:
            requirements = read_requirements(Path(audit.requirements))
        except InputFileError as error:
            raise NodeError("audit.input_unreadable", str(error)) from error
        packages, absent = select_required(requirements, search_path)
    else:
        packages = list_installed(search_path)
    return Command(
        update={"findings": absent},
        goto=[
            Send("inspect", {"name": p.name, "version": p.version, "path": str(p.path)})
            for p in packages
        ],
    )


def inspect(audit: Audit, ctx: NodeContext) -> dict[str, Any]:
    """Find one package's licence, unless an operator has given it by hand."""
    package = ctx.send_arg
    licence = find_override(package["name"], audit.overrides)
    if licence is not None:
        finding = Finding(
            name=package["name"],
            version=package["version"],
            licence=licence,
            strategy="override",
            evidence="given by an operator",
        )
        return {"findings": [finding]}
    try:
        return {"findings": [inspect_package(Path(package["path"]))]}
    except UnreadableMetadataError as error:
        raise NodeError(
            "audit.metadata_unreadable",
            f"the metadata of {package['name']} cannot be read. Edit the state: give "
            f'its licence, such as "overrides": {{"{package["name"]}": "MIT"}}; or '
            f"install the package again. Then retry. The fault: {error}",
        ) from error


def draft(audit: Audit, ctx: NodeContext) -> dict[str, Any]:
    """Write what is known before anybody is asked, so that there is a report early."""
    return {"report": write_report(audit, run_id=ctx.run_id, thread_id=ctx.thread_id)}


def approve(audit: Audit, ctx: NodeContext) -> list[Interrupt] | dict[str, Any]:
    """Ask a person about each licence in question; go on when all have answered."""
    questions = list_questions(audit)
    unanswered = [q for q in questions if q.key not in ctx.answers]
    if unanswered:
        return [Interrupt(q.payload, schema=q.schema, key=q.key) for q in unanswered]
    decisions = {q.key: _record(ctx.answers[q.key]) for q in questions}
    return {"decisions": {**audit.decisions, **decisions}}


def report(audit: Audit, ctx: NodeContext) -> dict[str, Any]:
    """Write the report again, with the decisions in it."""
    return {"report": write_report(audit, run_id=ctx.run_id, thread_id=ctx.thread_id)}


def choose_after_draft(audit: Audit) -> str:
    """Route to a person only when there is something to ask."""
    return "ask" if list_questions(audit) else "nothing_to_ask"


def choose_after_approval(audit: Audit) -> str:
    """Ask again where a refused licence left another one to choose."""
    return "ask_more" if list_questions(audit) else "decided"


def _record(answer: Decision | dict[str, Any]) -> Recorded:
    given = answer if isinstance(answer, dict) else answer.model_dump()
    return Recorded.model_validate(given)


builder.add_command_node("collect", collect, destinations=["inspect"])
builder.add_node("inspect", inspect)
builder.add_node("draft", draft)
builder.add_node("approve", approve)
builder.add_node("report", report)
builder.add_edge(START, "collect")
builder.add_waiting_edge(["inspect"], "draft")
builder.add_conditional_edges(
    "draft", choose_after_draft, {"ask": "approve", "nothing_to_ask": END}
)
builder.add_conditional_edges(
    "approve", choose_after_approval, {"ask_more": "approve", "decided": "report"}
)
builder.add_edge("report", END)
builder.with_parallel(max_concurrency=CONCURRENT_INSPECTIONS)

graph = register(builder.compile())
