"""The three strategies, on the metadata of real packages and on doubtful texts."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import pytest

from project.audit.licence_texts import SLACK, recognise
from project.audit.licences import Outcome, PackageTexts, find_licence
from project.audit.packages import list_installed, read_metadata

ROOT = Path(__file__).parents[2]


def licence_text(package: str, name: str = "LICENSE") -> str:
    files = distribution(package).files or []
    path = next(file for file in files if file.name == name)
    return Path(str(path.locate())).read_text(encoding="utf-8")


def audit(package: str) -> Outcome:
    site = Path(str(distribution(package).locate_file("")))
    found = {installed.name: installed for installed in list_installed([site])}
    return find_licence(read_metadata(found[package.replace("-", "_")].path).texts)


@pytest.mark.parametrize(
    ("package", "licence", "strategy"),
    [
        ("orjson", "MPL-2.0 AND (Apache-2.0 OR MIT)", "License-Expression"),
        ("psycopg", "LGPL-3.0-only", "License-Expression"),
        ("inflection", "MIT", "classifiers"),
        ("django-picklefield", "MIT", "classifiers"),
        ("sqlparse", "BSD-3-Clause", "licence file"),
        ("rfc8785", "Apache-2.0", "licence file"),
    ],
)
def test_find_licence_of_an_installed_package_is_right(
    package: str, licence: str, strategy: str
) -> None:
    """Real packages that StateKnot runs with, two for each strategy."""
    outcome = audit(package)
    assert (outcome.licence, outcome.strategy) == (licence, strategy)


@pytest.mark.parametrize(
    ("package", "licence"),
    [
        ("pydantic", "MIT"),
        ("Django", "BSD-3-Clause"),
        ("djangorestframework", "BSD-3-Clause"),
        ("rfc8785", "Apache-2.0"),
        ("psycopg", "LGPL-3.0-only"),
        ("orjson", "MPL-2.0"),
    ],
)
def test_recognise_real_licence_file_names_its_licence(
    package: str, licence: str
) -> None:
    """The wording decides where nothing else is said."""
    names = {"djangorestframework": "LICENSE.md", "psycopg": "LICENSE.txt"}
    name = names.get(
        package, f"LICENSE-{licence}" if package == "orjson" else "LICENSE"
    )
    assert recognise(licence_text(package, name)) == (licence,)


def test_recognise_own_licence_is_apache() -> None:
    """The licence this repository carries is among those that are known."""
    assert recognise((ROOT / "LICENSE").read_text()) == ("Apache-2.0",)


def test_recognise_known_text_with_added_terms_is_in_doubt() -> None:
    """MIT with a page of further terms is not MIT."""
    text = licence_text("pydantic") + "You may not sell the software. " * (SLACK // 20)
    assert recognise(text) == ()


def test_recognise_licence_with_a_twist_is_not_its_model() -> None:
    """The JSON licence is the MIT text with one sentence more."""
    twist = "The Software shall be used for Good, not Evil. THE SOFTWARE IS PROVIDED"
    text = licence_text("pydantic").replace("THE SOFTWARE IS PROVIDED", twist)
    assert recognise(text) == ("JSON",)


def test_recognise_two_licences_in_one_file_names_both() -> None:
    """A file with two known texts and nothing else says both."""
    text = licence_text("pydantic") + licence_text("Django")
    assert recognise(text) == ("MIT", "BSD-3-Clause")


def test_find_licence_with_malformed_expression_goes_on_to_classifiers() -> None:
    """An expression that is none does not end the search."""
    outcome = find_licence(
        PackageTexts(
            expression="MIT / Apache",
            classifiers=("License :: OSI Approved :: MIT License",),
        )
    )
    assert (outcome.licence, outcome.strategy) == ("MIT", "classifiers")


def test_find_licence_with_vague_classifier_beside_a_clear_one_is_unknown() -> None:
    """A classifier that names a family spoils the others: the package is in doubt."""
    outcome = find_licence(
        PackageTexts(
            classifiers=(
                "License :: OSI Approved :: MIT License",
                "License :: OSI Approved :: BSD License",
            )
        )
    )
    assert outcome.licence is None
    assert "classifier 'BSD License' does not name one licence" in outcome.evidence


def test_find_licence_with_several_classifiers_takes_all_of_them() -> None:
    """The stricter reading: all apply."""
    outcome = find_licence(
        PackageTexts(
            classifiers=(
                "Programming Language :: Python",
                "License :: OSI Approved",
                "License :: OSI Approved :: Mozilla Public License 2.0 (MPL 2.0)",
                "License :: OSI Approved :: MIT License",
            )
        )
    )
    assert outcome.licence == "MIT AND MPL-2.0"


def test_find_licence_trusts_no_free_text_field() -> None:
    """The old License field is shown to a person and decides nothing."""
    assert find_licence(PackageTexts(stated="MIT")).licence is None


def test_find_licence_with_a_strange_licence_file_beside_a_known_one_is_unknown() -> (
    None
):
    """A second file that is called a licence may hold further terms."""
    known = ("LICENSE", licence_text("pydantic"))
    strange = ("LICENSE.extra", "Only on Tuesdays.")
    authors = ("AUTHORS", "Somebody")
    assert find_licence(PackageTexts(files=(known, authors))).licence == "MIT"
    assert find_licence(PackageTexts(files=(known, strange))).licence is None


def test_find_licence_without_any_hint_says_what_was_tried() -> None:
    """The evidence of an unknown licence names each strategy's reason."""
    outcome = find_licence(PackageTexts())
    assert outcome == Outcome(
        licence=None,
        strategy="none",
        evidence="no License-Expression; no licence classifier; no licence file",
    )
