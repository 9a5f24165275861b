"""The identifier grammars of spec/composition.md, section 1.3."""

from __future__ import annotations

import pytest

from stateknot.kernel.identifiers import (
    check_capability_name,
    check_digest,
    check_issuer,
    check_node_id,
    check_route_id,
    check_schema_id,
    check_subject,
    check_version,
    find_name_fault,
)
from tests.kernel.graph_samples import load_vectors

HEX = "0123456789abcdef" * 4

REJECTED_BY_REFERENCE = [
    entry["inputs"]
    for entry in load_vectors("composition_errors.json")
    if entry["expected_error"] == "InvalidId"
]


@pytest.mark.parametrize("text", ["a", "Z9", "0", "a_b.c-d", "a..b", "x" * 128])
def test_node_id_well_formed_passes(text: str) -> None:
    """Scenario 25: what the grammar admits."""
    assert find_name_fault(text) is None
    assert check_node_id(text) == check_route_id(text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "Empty"),
        ("x" * 129, "TooLong"),
        ("é" * 65, "TooLong"),
        (".", "PathLike"),
        ("..", "PathLike"),
        ("...", "InvalidByte(0)"),
        ("_private", "InvalidByte(0)"),
        ("-x", "InvalidByte(0)"),
        ("a/b", "InvalidByte(1)"),
        ("node name", "InvalidByte(4)"),
        ("naïve", "InvalidByte(2)"),
        ("a\n", "InvalidByte(1)"),
        ("a:b", "InvalidByte(1)"),
    ],
)
def test_node_id_malformed_names_first_fault(text: str, fault: str) -> None:
    """Scenario 25: the fault and, for a byte, its index; length is in bytes."""
    assert str(find_name_fault(text)) == fault
    assert fault in check_node_id(text)[0].message


@pytest.mark.parametrize("text", REJECTED_BY_REFERENCE)
def test_ids_of_error_vectors_are_invalid(text: str) -> None:
    """Scenario 25: the `id_rejected_*` vectors, for nodes and routes alike."""
    assert [issue.kind for issue in check_node_id(text)] == ["InvalidId"]
    assert [issue.owner for issue in check_route_id(text)] == ["RouteId"]


def test_node_id_that_is_no_text_is_invalid() -> None:
    assert check_node_id(7)[0].message == "NodeId 7 is not text"


@pytest.mark.parametrize("text", ["orders.workflow", "_x", "-", ".", "n" * 128])
def test_capability_name_may_begin_with_any_letter(text: str) -> None:
    assert check_capability_name(text) == []


@pytest.mark.parametrize("text", ["", "n" * 129, "a b", "a/b", "é"])
def test_capability_name_malformed_is_refused(text: str) -> None:
    assert check_capability_name(text)[0].owner == "CapabilityName"


@pytest.mark.parametrize("text", ["0.0.0", "1.20.3", f"{2**64 - 1}.0.0"])
def test_version_of_three_numbers_passes(text: str) -> None:
    assert check_version(text) == []


@pytest.mark.parametrize(
    "text",
    ["1.0", "1.0.0.0", "01.0.0", "1.0.0-rc1", "1.0.0+b", f"{2**64}.0.0", "\u0661.0.0"],
)
def test_version_malformed_is_refused(text: str) -> None:
    assert check_version(text)[0].owner == "Version"


@pytest.mark.parametrize("text", ["s", " ~", "s" * 255])
def test_subject_printable_passes(text: str) -> None:
    assert check_subject(text) == []


@pytest.mark.parametrize("text", ["", "s" * 256, "tab\t", "é"])
def test_subject_malformed_is_refused(text: str) -> None:
    assert check_subject(text)[0].owner == "SubjectId"


@pytest.mark.parametrize(
    "text",
    ["https://example.com", "HTTPS://Example.com:8443/a/../b", "https://[::1]:443/x"],
)
def test_issuer_https_uri_passes_as_written(text: str) -> None:
    assert check_issuer(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://example.com",
        "https:///path",
        "https://user@example.com",
        "https://example.com?q",
        "https://example.com#f",
        "https://example.com:70000",
        "https://exämple.com",
        "https://example.com/" + "a" * 500,
    ],
)
def test_issuer_malformed_is_refused(text: str) -> None:
    assert check_issuer(text)[0].owner == "IssuerId"


@pytest.mark.parametrize(
    "text",
    ["https://example.com/schemas/input", "https://a.b:8443/x%20y", "https://a.b"],
)
def test_schema_id_normalised_passes(text: str) -> None:
    assert check_schema_id(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "HTTPS://example.com/x",
        "https://Example.com/x",
        "https://example.com:443/x",
        "https://example.com:/x",
        "https://example.com:08443/x",
        "https://example.com/a/../x",
        "https://example.com/./x",
        "https://example.com/%7ex",
        "https://example.com/%7Ex",
        "https://example.com/x?q=1",
    ],
)
def test_schema_id_not_normalised_is_refused(text: str) -> None:
    """Ids are compared byte by byte, so one document has one spelling."""
    assert check_schema_id(text)[0].owner == "SchemaId"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"sha256:{HEX.upper()}", "NonCanonicalDigest"),
        (f"SHA256:{HEX}", "NonCanonicalDigest"),
        (f"sha256:{HEX}0", "NonCanonicalDigest"),
        (f"sha512:{HEX}", "UnsupportedDigest"),
        (HEX, "UnsupportedDigest"),
    ],
)
def test_digest_in_other_form_is_refused(text: str, kind: str) -> None:
    assert check_digest(f"sha256:{HEX}") == []
    assert check_digest(text)[0].kind == kind
