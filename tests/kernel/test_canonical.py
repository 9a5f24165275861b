"""Canonical bytes and digests against the recorded values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stateknot.errors import SerializationError
from stateknot.kernel.canonical import canonical_bytes, digest_of, domain_digest
from tests.kernel.graph_samples import load_vectors

EXACT = 2**53 - 1
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-EXACT, EXACT) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    "record", load_vectors("records.json"), ids=lambda r: r["name"]
)
def test_domain_digest_of_recorded_preimage_is_the_recorded_one(
    record: dict[str, Any],
) -> None:
    """Scenario 70 of spec/composition.md: domain-separated digests."""
    domain = record["domain_bytes"].removesuffix("\\0")
    preimage = json.loads(record["preimage_json"])
    assert domain_digest(domain, preimage) == record["expected"]


def test_canonical_bytes_follow_rfc_8785() -> None:
    """Source: RFC 8785, 3.2.2 and 3.2.3: numbers, escapes, keys in UTF-16 order."""
    value = {
        "\ufb33": 1e30,
        "\U0001f600": -0.0,
        "\u20ac": 4.50,
        "1": [0.002, 1e-27, 333333333.33333329, 1.0],
        "text": '\u20ac$\x0f\nA\'B"\\\\"/',
    }
    expected = (
        '{"1":[0.002,1e-27,333333333.3333333,1],"text":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/",'
        '"€":4.5,"😀":0,"\ufb33":1e+30}'
    )
    assert canonical_bytes(value) == expected.encode()


@given(JSON)
def test_canonical_bytes_read_back_equal(value: Any) -> None:
    assert json.loads(canonical_bytes(value)) == value


@given(st.dictionaries(TEXT, JSON))
def test_canonical_bytes_ignore_the_order_of_keys(value: dict[str, Any]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_bytes(backwards) == canonical_bytes(value)


def _endless() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), 2**53, {1: 2}, "\ud800", {"\ud800": 1}, object()],
)
def test_canonical_bytes_without_a_json_form_are_refused(value: Any) -> None:
    with pytest.raises(SerializationError, match="no canonical JSON form"):
        canonical_bytes(value)


def test_canonical_bytes_of_endless_value_are_refused() -> None:
    with pytest.raises(SerializationError, match="recursion"):
        canonical_bytes(_endless())


def test_digest_is_the_algorithm_with_lowercase_hex() -> None:
    expected = hashlib.sha256(b"x").hexdigest()
    assert digest_of(b"x") == f"sha256:{expected}"
    assert len(digest_of(b"")) == 71
