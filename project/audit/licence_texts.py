"""The wording of well-known licences, and recognising one in a file.

A licence is recognised by phrases that all of its copies share. A file with much more
text than the licences found in it is not recognised at all: the rest may be terms that
change everything ("MIT, but not for commercial use"). Pure. See `licences.py` for what
is made of the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NOT_A_WORD = re.compile(r"[^a-z0-9]+")
# Room for copyright lines, a heading and a sentence of introduction, in characters.
SLACK = 700


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """Phrases that must all (`has`) or none (`lacks`) occur; `length` of a plain copy.

    Phrases are lower case words with single spaces, `length` counts such text.
    """

    has: tuple[str, ...]
    length: int
    lacks: tuple[str, ...] = ()


MIT_GRANT = "permission is hereby granted free of charge to any person obtaining a copy"
MIT_NOTICE = "copyright notice and this permission notice"
BSD_GRANT = (
    "redistribution and use in source and binary forms with or without modification "
    "are permitted provided that the following conditions are met"
)
ISC_GRANT = "for any purpose with or without fee is hereby granted"
ISC_NOTICE = "provided that the above copyright notice and this permission notice"
ENDORSE = "used to endorse or promote products"
ADVERTISING = "advertising materials mentioning features"
COPYLEFT = "everyone is permitted to copy and distribute verbatim copies"
PSF_TITLE = "python software foundation license version 2"
BEOPEN_TITLE = "beopen python open source license agreement version 1"
EVIL = "shall be used for good not evil"

WORDINGS = {
    "MIT": Wording(has=(MIT_GRANT, MIT_NOTICE), lacks=(EVIL,), length=1000),
    "MIT-0": Wording(has=(MIT_GRANT,), lacks=(MIT_NOTICE,), length=800),
    "JSON": Wording(has=(MIT_GRANT, MIT_NOTICE, EVIL), length=1050),
    "BSD-2-Clause": Wording(
        has=(BSD_GRANT,), lacks=(ENDORSE, ADVERTISING), length=1200
    ),
    "BSD-3-Clause": Wording(
        has=(BSD_GRANT, ENDORSE), lacks=(ADVERTISING,), length=1450
    ),
    "BSD-4-Clause": Wording(has=(BSD_GRANT, ENDORSE, ADVERTISING), length=1600),
    "ISC": Wording(has=(ISC_GRANT, ISC_NOTICE), length=700),
    "0BSD": Wording(has=(ISC_GRANT,), lacks=(ISC_NOTICE,), length=600),
    "Zlib": Wording(
        has=(
            "freely subject to the following restrictions",
            "altered source versions must be plainly marked as such",
        ),
        length=900,
    ),
    "Unlicense": Wording(
        has=("this is free and unencumbered software released into the public domain",),
        length=1200,
    ),
    "CC0-1.0": Wording(
        has=("cc0 1 0 universal", "affirmer hereby overtly fully permanently"),
        length=6700,
    ),
    "PSF-2.0": Wording(has=(PSF_TITLE,), lacks=(BEOPEN_TITLE,), length=2400),
    "Python-2.0": Wording(has=(PSF_TITLE, BEOPEN_TITLE), length=13000),
    "MPL-2.0": Wording(
        has=("mozilla public license version 2 0", "1 1 contributor means each"),
        length=15600,
    ),
    "GPL-2.0-only": Wording(
        has=(COPYLEFT, "gnu general public license version 2 june 1991"), length=17300
    ),
    "GPL-3.0-only": Wording(
        has=(COPYLEFT, "gnu general public license version 3 29 june 2007"),
        length=33500,
    ),
    "LGPL-2.1-only": Wording(
        has=(COPYLEFT, "gnu lesser general public license version 2 1 february 1999"),
        length=25500,
    ),
    "LGPL-3.0-only": Wording(
        has=(COPYLEFT, "gnu lesser general public license version 3 29 june 2007"),
        length=7300,
    ),
    "AGPL-3.0-only": Wording(
        has=(COPYLEFT, "gnu affero general public license version 3 19 november 2007"),
        length=33000,
    ),
}
# Two forms of one licence: its text, and the notice that refers to it.
APACHE_FORMS = (
    Wording(
        has=(
            "apache license version 2 0 january 2004",
            "terms and conditions for use reproduction and distribution",
        ),
        length=10800,
    ),
    Wording(
        has=(
            "licensed under the apache license version 2 0 the license",
            "you may not use this file except in compliance with the license",
        ),
        lacks=("terms and conditions for use reproduction and distribution",),
        length=550,
    ),
)


def recognise(text: str) -> tuple[str, ...]:
    """Name the licences whose wording makes up the text; empty when in doubt."""
    words = NOT_A_WORD.sub(" ", text.lower()).strip()
    found = [
        (licence, wording)
        for licence, wording in _all_wordings()
        if _matches(words, wording)
    ]
    expected = sum(wording.length for _licence, wording in found)
    if not found or len(words) > expected + SLACK:
        return ()
    return tuple(dict.fromkeys(licence for licence, _wording in found))


def _all_wordings() -> tuple[tuple[str, Wording], ...]:
    apache = tuple(("Apache-2.0", wording) for wording in APACHE_FORMS)
    return (*WORDINGS.items(), *apache)


def _matches(words: str, wording: Wording) -> bool:
    return all(phrase in words for phrase in wording.has) and not any(
        phrase in words for phrase in wording.lacks
    )
