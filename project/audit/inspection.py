"""From one package to one finding: read it, look for its licence, keep the evidence.

It joins what `packages.py` reads with what `licences.py` decides. Failing to read is
the caller's business (`graphs.py` makes it a failure boundary).
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from project.audit.licences import find_licence
from project.audit.packages import list_installed, normalise_name, read_metadata
from project.audit.review import NOT_INSTALLED
from project.audit.state import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from project.audit.inputs import Requirement
    from project.audit.licences import PackageTexts
    from project.audit.packages import Installed

EXCERPT_CHARACTERS = 400


def inspect_package(path: Path) -> Finding:
    """Read the package at a metadata path and look for its licence.

    Raises `UnreadableMetadataError`.
    """
    metadata = read_metadata(path)
    outcome = find_licence(metadata.texts)
    is_unknown = outcome.licence is None
    return Finding(
        name=metadata.name,
        version=metadata.version,
        licence=outcome.licence,
        strategy=outcome.strategy,
        evidence=_add_stated(outcome.evidence, metadata.texts),
        wording=_digest_wording(metadata.texts) if is_unknown else "",
        excerpt=_excerpt(metadata.texts) if is_unknown else "",
    )


def find_override(name: str, overrides: Mapping[str, str]) -> str | None:
    """Look a package up among the licences given by hand, whatever its spelling."""
    wanted = normalise_name(name)
    for given, licence in overrides.items():
        if normalise_name(given) == wanted:
            return licence
    return None


def select_required(
    requirements: list[Requirement], search_path: Iterable[str]
) -> tuple[list[Installed], list[Finding]]:
    """Split the packages a file names into installed ones and findings of the rest.

    Another version being installed counts as not installed: licences change.
    """
    installed = {normalise_name(p.name): p for p in list_installed(search_path)}
    present, absent = [], []
    for requirement in requirements:
        package = installed.get(normalise_name(requirement.name))
        if package and _is_pinned_version(package.version, requirement.pin):
            present.append(package)
        else:
            absent.append(_report_absent(requirement, package))
    return present, absent


def is_absent(finding: Finding) -> bool:
    """Say whether the finding is of a package that is named, yet not installed."""
    return finding.strategy == NOT_INSTALLED


def _is_pinned_version(version: str, pin: str) -> bool:
    """Compare as far as an audit needs it: 5.2 is 5.2.0, 2.1+cu118 satisfies 2.1."""
    if not pin:
        return True
    plain = version if "+" in pin else version.partition("+")[0]
    return _trim_version(plain) == _trim_version(pin)


def _trim_version(version: str) -> str:
    return re.sub(r"(\.0)+$", "", version.lower().lstrip("v").replace("_", "."))


def _report_absent(requirement: Requirement, other: Installed | None) -> Finding:
    condition = f", only if {requirement.marker}" if requirement.marker else ""
    instead = f"; installed is {other.version}" if other else ""
    return Finding(
        name=requirement.name,
        version=requirement.pin,
        strategy=NOT_INSTALLED,
        evidence=f"named in {requirement.origin}{condition}{instead}",
    )


def _add_stated(evidence: str, texts: PackageTexts) -> str:
    if not texts.stated or evidence.startswith("License-Expression:"):
        return evidence
    return f"{evidence} (its License field says {texts.stated!r})"


def _digest_wording(texts: PackageTexts) -> str:
    """Tell packages with the same terms; empty where there is nothing to compare."""
    said = "\n".join([texts.stated, *(text for _name, text in texts.files)]).strip()
    return hashlib.sha256(said.encode()).hexdigest()[:16] if said else ""


def _excerpt(texts: PackageTexts) -> str:
    said = next((text for _name, text in texts.files if text.strip()), texts.stated)
    # NUL and other control characters cannot be kept in a state.
    printable = "".join(c if c.isprintable() else " " for c in said)
    return " ".join(printable.split())[:EXCERPT_CHARACTERS]
