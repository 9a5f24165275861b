"""What a package's licence is: three strategies, tried in turn.

`License-Expression`, then the classifiers, then the licence file's text. Each gives a
licence expression, or says why it cannot. A wrong licence is worse than none, so every
doubt ends in "unknown" and a person is asked. Pure: it gets texts and opens no file
(`packages.py` does). The known texts stand in `licence_texts.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from project.audit.licence_texts import recognise
from project.audit.spdx import ExpressionError, parse_expression

# Only classifiers that name one licence. "BSD License", "Apache Software License" and
# the GNU families name several (PEP 639, appendix); they are left to the text.
CLASSIFIERS = {
    "OSI Approved :: MIT License": "MIT",
    "OSI Approved :: MIT No Attribution License (MIT-0)": "MIT-0",
    "OSI Approved :: ISC License (ISCL)": "ISC",
    "OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "OSI Approved :: Mozilla Public License 1.1 (MPL 1.1)": "MPL-1.1",
    "OSI Approved :: The Unlicense (Unlicense)": "Unlicense",
    "OSI Approved :: Universal Permissive License (UPL)": "UPL-1.0",
    "OSI Approved :: Boost Software License 1.0 (BSL-1.0)": "BSL-1.0",
    "OSI Approved :: zlib/libpng License": "Zlib",
    "OSI Approved :: Blue Oak Model License (BlueOak-1.0.0)": "BlueOak-1.0.0",
    "OSI Approved :: GNU General Public License v2 (GPLv2)": "GPL-2.0-only",
    "OSI Approved :: GNU General Public License v2 or later (GPLv2+)": (
        "GPL-2.0-or-later"
    ),
    "OSI Approved :: GNU General Public License v3 (GPLv3)": "GPL-3.0-only",
    "OSI Approved :: GNU General Public License v3 or later (GPLv3+)": (
        "GPL-3.0-or-later"
    ),
    "OSI Approved :: GNU Lesser General Public License v2 (LGPLv2)": "LGPL-2.0-only",
    "OSI Approved :: GNU Lesser General Public License v2 or later (LGPLv2+)": (
        "LGPL-2.0-or-later"
    ),
    "OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "OSI Approved :: GNU Lesser General Public License v3 or later (LGPLv3+)": (
        "LGPL-3.0-or-later"
    ),
    "OSI Approved :: GNU Affero General Public License v3": "AGPL-3.0-only",
    "OSI Approved :: GNU Affero General Public License v3 or later (AGPLv3+)": (
        "AGPL-3.0-or-later"
    ),
    "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication": "CC0-1.0",
}
PREFIX = "License :: "
# Statements about a licence, none of which names one.
SILENT_CLASSIFIERS = frozenset({"OSI Approved", "DFSG approved"})
LICENCE_FILE = re.compile(r"licen[cs]e|copying", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageTexts:
    """What a package says about its licence.

    `stated` is the old free-text `License` field: it is shown to the person who is
    asked, and no strategy trusts it. `files` are (path, text) of its licence files,
    the paths relative to the metadata and different from each other.
    """

    expression: str = ""
    classifiers: tuple[str, ...] = ()
    stated: str = ""
    files: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A licence and the strategy that found it, or None and what each one met."""

    licence: str | None
    strategy: str
    evidence: str


def find_licence(texts: PackageTexts) -> Outcome:
    """Try the strategies in turn; the first that gives a licence decides."""
    refusals = []
    for strategy, attempt in STRATEGIES.items():
        licence, evidence = attempt(texts)
        if licence is not None:
            return Outcome(licence=licence, strategy=strategy, evidence=evidence)
        refusals.append(evidence)
    return Outcome(licence=None, strategy="none", evidence="; ".join(refusals))


def read_license_expression(texts: PackageTexts) -> tuple[str | None, str]:
    """Take the metadata field that says it outright, if it can be read."""
    if not texts.expression.strip():
        return None, "no License-Expression"
    try:
        expression = parse_expression(texts.expression)
    except ExpressionError as error:
        return None, f"License-Expression {error}"
    return str(expression), f"License-Expression: {texts.expression.strip()}"


def read_classifiers(texts: PackageTexts) -> tuple[str | None, str]:
    """Combine the licence classifiers, unless one of them names only a family.

    Several classifiers do not say whether all of them apply or one may be chosen. The
    stricter reading is taken: all apply.
    """
    named = [
        classifier.removeprefix(PREFIX)
        for classifier in texts.classifiers
        if classifier.startswith(PREFIX)
    ]
    named = [name for name in named if name not in SILENT_CLASSIFIERS]
    if not named:
        return None, "no licence classifier"
    vague = [name for name in named if name not in CLASSIFIERS]
    if vague:
        shown = ", ".join(name.rpartition(" :: ")[2] for name in vague)
        return None, f"classifier {shown!r} does not name one licence"
    licences = sorted({CLASSIFIERS[name] for name in named})
    return " AND ".join(licences), f"classifier: {', '.join(named)}"


def read_licence_files(texts: PackageTexts) -> tuple[str | None, str]:
    """Recognise the licence files by their wording.

    Licences of several files are taken to apply together. A file that is called a
    licence and is none of the known ones spoils the answer; AUTHORS, NOTICE and the
    like do not.
    """
    if not texts.files:
        return None, "no licence file"
    recognised = {name: recognise(text) for name, text in texts.files}
    strange = [
        name
        for name, licences in recognised.items()
        if not licences and LICENCE_FILE.search(name.rpartition("/")[2])
    ]
    licences = sorted({found for names in recognised.values() for found in names})
    if strange or not licences:
        return None, f"{', '.join(strange or recognised)} matches no known licence text"
    speaking = ", ".join(name for name, names in recognised.items() if names)
    return " AND ".join(licences), f"text of {speaking}"


STRATEGIES = {
    "License-Expression": read_license_expression,
    "classifiers": read_classifiers,
    "licence file": read_licence_files,
}
