"""Canonical bytes and digests: what gives definitions and records their names.

Owns the RFC 8785 profile. State bytes on the hot path have a profile of their own (see
`profile.py`): the two differ in number form and in the order of keys outside the BMP,
so each digest says which one it is over. Read `definition.py` next for the main user.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import rfc8785

from stateknot.errors import SerializationError

if TYPE_CHECKING:
    from stateknot.kernel.vocabulary import JsonValue


def canonical_bytes(obj: JsonValue) -> bytes:
    """Encode `obj` as RFC 8785 JSON: UTF-8, no trailing newline.

    Raises SerializationError for what the RFC cannot hold: NaN, infinities, integers
    past 2^53-1, lone surrogates, keys that are not strings, endless nesting.
    """
    try:
        return rfc8785.dumps(obj)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, RecursionError) as error:
        raise SerializationError(
            f"value has no canonical JSON form: {error}; use text, finite numbers, "
            "lists, and dicts with text keys"
        ) from error


def digest_of(data: bytes) -> str:
    """Name `data` by its SHA-256: `sha256:` and 64 lowercase hex digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def domain_digest(domain: str, preimage: JsonValue) -> str:
    """Digest `preimage` under `domain`, so that no two kinds of record share a digest.

    The bytes are the ASCII domain, one zero byte, the canonical preimage
    (spec/composition.md, section 4.2).
    """
    return digest_of(domain.encode("ascii") + b"\0" + canonical_bytes(preimage))
