"""What a person is asked, and what every package's verdict is. Pure.

Packages are grouped so that one answer covers all of a licence: a handful of questions,
not one a package. A verdict is worked out anew each time from findings, allow-list and
decisions, so that an edited state needs no repair elsewhere. Read `report.py` next.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from project.audit.spdx import list_blockers, list_licences, parse_expression
from project.audit.state import Decision, NamedDecision

if TYPE_CHECKING:
    from project.audit.spdx import Expression
    from project.audit.state import Audit, Finding

NOT_INSTALLED = "not installed"
LICENCE = "licence:"
VERDICTS = ("allowed", "accepted", "rejected", "open", NOT_INSTALLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question; `key` names it for good, `schema` is the form of its answer.

    `payload` is shown in the order of its names: first what is asked.
    """

    key: str
    payload: dict[str, Any]
    schema: type[Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A finding with its verdict, the licence that counts and the person's note.

    `open_keys` are the keys of the questions it waits for; empty unless it is open.
    """

    finding: Finding
    verdict: str
    licence: str
    note: str = ""
    open_keys: tuple[str, ...] = ()


def list_questions(audit: Audit) -> list[Question]:
    """List what is still to be decided: licences first, then packages without one."""
    groups: dict[str, list[Finding]] = defaultdict(list)
    for item in judge_all(audit):
        for key in item.open_keys:
            groups[key].append(item.finding)
    return [_ask(key, groups[key]) for key in sorted(groups)]


def judge_all(audit: Audit) -> list[Judged]:
    """Give every package its verdict, by name."""
    keys = _key_unknown(audit)
    return [_judge(finding, audit, keys) for finding in _by_name(audit)]


def count_verdicts(judged: list[Judged]) -> dict[str, int]:
    """Count the packages of each verdict that occurs."""
    counts = dict.fromkeys(VERDICTS, 0)
    for item in judged:
        counts[item.verdict] += 1
    return {verdict: count for verdict, count in counts.items() if count}


def licence_key(licence: str) -> str:
    """Key of the question about a licence."""
    return f"{LICENCE}{licence}"


def _judge(finding: Finding, audit: Audit, keys: dict[str, str]) -> Judged:
    if finding.strategy == NOT_INSTALLED:
        return Judged(finding=finding, verdict=NOT_INSTALLED, licence="")
    if finding.licence is None:
        return _judge_unknown(finding, keys[finding.name], audit)
    return _judge_licence(finding, finding.licence, audit)


def _judge_unknown(finding: Finding, key: str, audit: Audit) -> Judged:
    decision = audit.decisions.get(key)
    if decision is None:
        return Judged(finding=finding, verdict="open", licence="", open_keys=(key,))
    return Judged(
        finding=finding,
        verdict="accepted" if decision.is_accepted else "rejected",
        licence=decision.licence,
        note=decision.note,
    )


def _judge_licence(finding: Finding, licence: str, audit: Audit) -> Judged:
    expression = parse_expression(licence)
    accepted, refused = _decided_licences(audit)
    missing = list_blockers(expression, [*audit.allowed, *accepted], refused)
    if missing is None:
        verdict = "rejected"
    elif missing:
        verdict = "open"
    else:
        verdict = "accepted" if list_blockers(expression, audit.allowed) else "allowed"
    return Judged(
        finding=finding,
        verdict=verdict,
        licence=licence,
        note=_join_notes(audit, expression) if verdict != "allowed" else "",
        open_keys=tuple(licence_key(str(need)) for need in missing or ()),
    )


def _decided_licences(audit: Audit) -> tuple[list[str], list[str]]:
    accepted: list[str] = []
    refused: list[str] = []
    for key, decision in audit.decisions.items():
        if key.startswith(LICENCE):
            known = accepted if decision.is_accepted else refused
            known.append(key.removeprefix(LICENCE))
    return accepted, refused


def _join_notes(audit: Audit, expression: Expression) -> str:
    keys = [licence_key(str(licence)) for licence in list_licences(expression)]
    notes = [audit.decisions[key].note for key in keys if key in audit.decisions]
    return "; ".join(filter(None, notes))


def _key_unknown(audit: Audit) -> dict[str, str]:
    """Key each package without a licence by the first package of the same wording."""
    first: dict[str, str] = {}
    keys = {}
    for finding in _by_name(audit):
        if finding.licence is None:
            leader = first.setdefault(finding.wording or finding.name, finding.name)
            keys[finding.name] = f"package:{leader}"
    return keys


def _by_name(audit: Audit) -> list[Finding]:
    return sorted(audit.findings, key=lambda finding: finding.name.casefold())


def _ask(key: str, findings: list[Finding]) -> Question:
    if key.startswith(LICENCE):
        return _ask_licence(key, findings)
    return _ask_unknown(key, findings)


def _ask_licence(key: str, findings: list[Finding]) -> Question:
    licence = key.removeprefix(LICENCE)
    return Question(
        key=key,
        schema=Decision,
        payload={
            "asked": f"{licence} is not on the allow-list. May it be used?",
            "packages": [f"{f.name} {f.version} ({f.licence})" for f in findings],
        },
    )


def _ask_unknown(key: str, findings: list[Finding]) -> Question:
    names = ", ".join(finding.name for finding in findings)
    return Question(
        key=key,
        schema=NamedDecision,
        payload={
            "asked": f"No licence was found for {names}. What is it, and may it be "
            "used?",
            "packages": [f"{f.name} {f.version}" for f in findings],
            "looked_at": findings[0].evidence,
            "terms": findings[0].excerpt,
        },
    )
