"""The grammars of the identifiers that stand in a definition.

Each `check_*` returns the issues of one text, none when it is well formed; nothing is
ever normalised, since ids are compared byte by byte. Every admitted text is printable
ASCII, so Python's order of strings is the byte order that the canonical form wants.
Read `definition_parts.py` next for the values made of these texts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from stateknot.errors import GraphError
from stateknot.kernel.definition_issues import shown

MAXIMUM_NAME_BYTES = 128
MAXIMUM_URI_BYTES = 512
MAXIMUM_SUBJECT_BYTES = 255
MAXIMUM_VERSION_BYTES = 62
MAXIMUM_VERSION_NUMBER = 2**64 - 1

_ALPHANUMERIC = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
)
_NAME_BYTES = _ALPHANUMERIC | frozenset(b"_.-")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", re.ASCII)
_CAPABILITY = re.compile(r"[A-Za-z0-9_.-]{1,128}", re.ASCII)
_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)", re.ASCII)
_SUBJECT = re.compile(r"[\x20-\x7e]+")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_URI = re.compile(
    r"(?P<scheme>https)://"
    r"(?P<host>\[[0-9a-f:.]+\]|(?:[a-z0-9._~!$&'()*+,;=-]|%[0-9a-f]{2})+)"
    r"(?::(?P<port>[0-9]*))?"
    r"(?P<path>(?:/(?:[a-z0-9._~!$&'()*+,;=:@-]|%[0-9a-f]{2})*)*)",
    re.ASCII | re.IGNORECASE,
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = _ALPHANUMERIC | frozenset(b"-._~")
_HIGHEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class NameFault:
    """Why a text is no name: Empty, TooLong, PathLike, or InvalidByte at `index`."""

    reason: str
    index: int | None = None

    def __str__(self) -> str:
        return self.reason if self.index is None else f"{self.reason}({self.index})"


def find_name_fault(text: str) -> NameFault | None:
    """Find the first broken rule of a node or route id, in the reference's order."""
    data = text.encode("utf-8", "surrogatepass")
    if not data:
        return NameFault("Empty")
    if len(data) > MAXIMUM_NAME_BYTES:
        return NameFault("TooLong")
    if text in {".", ".."}:
        return NameFault("PathLike")
    for index, byte in enumerate(data):
        if byte not in (_NAME_BYTES if index else _ALPHANUMERIC):
            return NameFault("InvalidByte", index)
    return None


def check_node_id(text: object) -> list[GraphError]:
    return _check_name("NodeId", text)


def check_route_id(text: object) -> list[GraphError]:
    return _check_name("RouteId", text)


def _check_name(owner: str, text: object) -> list[GraphError]:
    if not isinstance(text, str):
        return _refuse(owner, text, "is not text")
    # The pattern alone decides; the slow search only says why it refused.
    if _NAME.fullmatch(text):
        return []
    fault = find_name_fault(text)
    return _refuse(
        owner,
        text,
        f"is not well formed: {fault}. Use 1 to {MAXIMUM_NAME_BYTES} of the letters "
        "A-Z, a-z, digits, '_', '.', '-', beginning with a letter or digit",
    )


def check_capability_name(text: str) -> list[GraphError]:
    """Unlike a node id, a capability name may begin with any of its letters."""
    if _CAPABILITY.fullmatch(text):
        return []
    return _refuse(
        "CapabilityName", text, "must be 1 to 128 of A-Z, a-z, digits, '_', '.', '-'"
    )


def check_version(text: str) -> list[GraphError]:
    matched = _VERSION.fullmatch(text) if len(text) <= MAXIMUM_VERSION_BYTES else None
    if matched and max(map(int, matched.groups())) <= MAXIMUM_VERSION_NUMBER:
        return []
    return _refuse(
        "Version", text, "must be three numbers such as '1.0.0', without leading zeros"
    )


def check_subject(text: str) -> list[GraphError]:
    if len(text) <= MAXIMUM_SUBJECT_BYTES and _SUBJECT.fullmatch(text):
        return []
    return _refuse("SubjectId", text, "must be 1 to 255 printable ASCII characters")


def check_digest(text: str) -> list[GraphError]:
    if _DIGEST.fullmatch(text):
        return []
    is_sha256 = text[:7].lower() == "sha256:"
    return _refuse(
        "Digest",
        text,
        "must be 'sha256:' and 64 lowercase hex digits",
        kind="NonCanonicalDigest" if is_sha256 else "UnsupportedDigest",
    )


def check_issuer(text: str) -> list[GraphError]:
    if _split_uri(text):
        return []
    return _refuse(
        "IssuerId",
        text,
        "must be an https URI of at most 512 bytes without user, query or fragment",
    )


def check_schema_id(text: str) -> list[GraphError]:
    matched = _split_uri(text)
    if matched and _is_normalised(matched):
        return []
    return _refuse(
        "SchemaId",
        text,
        "must be a normalised https URI of at most 512 bytes: lowercase host, no "
        "default port, no '.' or '..' segments, no user, query or fragment",
    )


def _split_uri(text: str) -> re.Match[str] | None:
    if len(text) > MAXIMUM_URI_BYTES:
        return None
    matched = _URI.fullmatch(text)
    if matched is None or int(matched["port"] or 0) > _HIGHEST_PORT:
        return None
    return matched


def _is_normalised(uri: re.Match[str]) -> bool:
    """Whether RFC 3986 normalisation (section 6.2.2, 6.2.3) would change nothing."""
    port, host = uri["port"], uri["host"]
    return (
        uri["scheme"] == "https"
        and _ESCAPE.sub("", host) == _ESCAPE.sub("", host).lower()
        and port not in {"", "443"}
        and not (port or "").startswith("0")
        and not any(segment in {".", ".."} for segment in uri["path"].split("/"))
        and all(_is_needed_escape(code) for code in _ESCAPE.findall(uri.string))
    )


def _is_needed_escape(code: str) -> bool:
    return code == code.upper() and int(code, 16) not in _UNRESERVED


def _refuse(
    owner: str, text: object, rule: str, *, kind: str = "InvalidId"
) -> list[GraphError]:
    return [GraphError(f"{owner} {shown(text)} {rule}", kind=kind, owner=owner)]
