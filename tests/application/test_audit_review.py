"""Questions and verdicts of an audit, worked out from its state alone."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from project.audit.review import count_verdicts, judge_all, list_questions
from project.audit.state import Audit, Decision, Finding, NamedDecision, Recorded


def found(name: str, licence: str | None, wording: str = "") -> Finding:
    return Finding(
        name=name,
        version="1.0",
        licence=licence,
        strategy="none" if licence is None else "classifiers",
        wording=wording,
    )


def audit_of(*findings: Finding, **values: Any) -> Audit:
    return Audit(findings=list(findings), allowed=["MIT"], **values)


def verdicts(audit: Audit) -> dict[str, str]:
    return {judged.finding.name: judged.verdict for judged in judge_all(audit)}


def keys(audit: Audit) -> list[str]:
    return [question.key for question in list_questions(audit)]


ACCEPT = Recorded(decision="accept", note="fine")
REJECT = Recorded(decision="reject")


def test_questions_cover_all_packages_of_a_licence() -> None:
    """One question for each licence that is missing, whoever needs it."""
    audit = audit_of(
        found("b", "MPL-2.0"),
        found("a", "MPL-2.0 AND MIT"),
        found("c", "MIT"),
        found("d", "LGPL-3.0-only"),
    )
    licences = list_questions(audit)
    assert [q.key for q in licences] == ["licence:LGPL-3.0-only", "licence:MPL-2.0"]
    assert licences[1].payload["packages"] == [
        "a 1.0 (MPL-2.0 AND MIT)",
        "b 1.0 (MPL-2.0)",
    ]
    assert licences[1].schema is Decision


def test_questions_cover_unknown_packages_of_equal_terms() -> None:
    """Packages with the same unknown wording share a question, named by the first."""
    audit = audit_of(
        found("z", None, "w1"),
        found("y", None, "w1"),
        found("x", None),
        found("w", None),
    )
    questions = {q.key: q.payload["packages"] for q in list_questions(audit)}
    assert questions == {
        "package:w": ["w 1.0"],
        "package:x": ["x 1.0"],
        "package:y": ["y 1.0", "z 1.0"],
    }
    assert {q.schema for q in list_questions(audit)} == {NamedDecision}


def test_questions_do_not_depend_on_the_order_of_inspections() -> None:
    """Whatever inspection ended first, the questions are the same."""
    findings = [found("a", None, "w"), found("B", None, "w"), found("c", "MPL-2.0")]
    one, other = audit_of(*findings), audit_of(*reversed(findings))
    assert list_questions(one) == list_questions(other)


def test_accepted_licence_accepts_every_package_that_needed_it() -> None:
    """Accepting a licence is allowing it for this audit, with the note kept."""
    audit = audit_of(
        found("a", "MPL-2.0 AND MIT"),
        found("b", "MPL-2.0 AND LGPL-3.0-only"),
        decisions={"licence:MPL-2.0": ACCEPT},
    )
    assert verdicts(audit) == {"a": "accepted", "b": "open"}
    assert judge_all(audit)[0].note == "fine"
    assert keys(audit) == ["licence:LGPL-3.0-only"]


def test_refused_licence_leaves_the_alternative_to_be_asked() -> None:
    """`A OR B` with A refused is not rejected: B may still be chosen."""
    audit = audit_of(found("a", "A OR B"), decisions={"licence:A": REJECT})
    assert verdicts(audit) == {"a": "open"}
    assert keys(audit) == ["licence:B"]


def test_refused_licence_without_alternative_rejects() -> None:
    """Nothing is left to ask."""
    audit = audit_of(found("a", "A AND MIT"), decisions={"licence:A": REJECT})
    assert verdicts(audit) == {"a": "rejected"}
    assert keys(audit) == []


def test_named_licence_of_an_unknown_package_goes_to_the_report() -> None:
    """The person's word is the licence, for every package of those terms."""
    decision = Recorded(decision="accept", licence="LicenseRef-House", note="asked")
    audit = audit_of(
        found("a", None, "w"), found("b", None, "w"), decisions={"package:a": decision}
    )
    assert verdicts(audit) == {"a": "accepted", "b": "accepted"}
    assert [j.licence for j in judge_all(audit)] == ["LicenseRef-House"] * 2


def test_verdicts_are_counted_without_those_that_do_not_occur() -> None:
    """Absent packages count apart and are never asked about."""
    absent = Finding(name="gone", version="1", strategy="not installed")
    audit = audit_of(found("a", "MIT"), found("b", "MIT"), absent)
    assert count_verdicts(judge_all(audit)) == {"allowed": 2, "not installed": 1}
    assert keys(audit) == []


def test_override_that_is_no_expression_is_refused() -> None:
    """An operator's edit of the state is checked before it is stored."""
    with pytest.raises(ValidationError, match="is no licence expression"):
        Audit(overrides={"demo": "see LICENSE"})


def test_answer_that_names_no_expression_is_refused() -> None:
    """So is a person's answer."""
    with pytest.raises(ValidationError, match="is no licence expression"):
        NamedDecision(decision="accept", licence="own terms")


def test_answer_without_a_decision_is_refused() -> None:
    """A form that is sent without a choice does not count as a no."""
    with pytest.raises(ValidationError, match="decision"):
        Decision.model_validate({"note": "hm"})
