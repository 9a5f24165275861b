"""Packages on disk: listing them, reading them, and damage of every kind."""

from __future__ import annotations

import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from project.audit.packages import (
    Installed,
    UnreadableMetadataError,
    list_installed,
    normalise_name,
    read_metadata,
)


def make_package(directory: Path, folder: str, metadata: str | bytes | None) -> Path:
    path = directory / folder
    path.mkdir(parents=True)
    if metadata is not None:
        content = metadata if isinstance(metadata, bytes) else metadata.encode()
        (path / "METADATA").write_bytes(content)
    return path


def test_list_installed_names_what_the_interpreter_sees() -> None:
    """No package of this environment is missing or invented."""
    listed = {normalise_name(package.name) for package in list_installed(sys.path)}
    assert listed == {normalise_name(found.name) for found in distributions()}


def test_list_installed_takes_the_first_of_a_name(tmp_path: Path) -> None:
    """Earlier directories shadow later ones, whatever the spelling."""
    first = make_package(tmp_path / "a", "My_Package-1.0.dist-info", None)
    make_package(tmp_path / "b", "my.package-2.0.dist-info", None)
    assert list_installed([tmp_path / "a", tmp_path / "b"]) == [
        Installed(name="My_Package", version="1.0", path=first)
    ]


@pytest.mark.parametrize(
    ("folder", "name", "version"),
    [
        ("plain-1.2.3.dist-info", "plain", "1.2.3"),
        ("old-0.1-py3.11.egg-info", "old", "0.1"),
        ("develop.egg-info", "develop", "unknown"),
    ],
)
def test_list_installed_reads_name_and_version_off_the_folder(
    tmp_path: Path, folder: str, name: str, version: str
) -> None:
    """Listing opens no metadata, so damaged packages are listed too."""
    make_package(tmp_path, folder, None)
    (package,) = list_installed([tmp_path])
    assert (package.name, package.version) == (name, version)


def test_list_installed_passes_over_what_is_no_directory(tmp_path: Path) -> None:
    """A zip or a removed directory on the path is not an error."""
    file = tmp_path / "python311.zip"
    file.write_bytes(b"")
    assert list_installed([file, tmp_path / "gone"]) == []


def test_read_metadata_gives_what_the_package_says(tmp_path: Path) -> None:
    """Fields, classifiers and licence files, declared or named like one."""
    path = make_package(
        tmp_path,
        "demo-1.0.dist-info",
        "Name: Demo\nVersion: 1.0\nLicense: Own\n"
        "Classifier: A\nClassifier: B\nLicense-File: TERMS\n\nLicense: in the text\n",
    )
    (path / "licenses").mkdir()
    (path / "licenses" / "TERMS").write_bytes("Größe".encode("latin-1"))
    (path / "COPYING").write_text("copy")
    metadata = read_metadata(path)
    assert (metadata.name, metadata.version) == ("Demo", "1.0")
    assert metadata.texts.stated == "Own"
    assert metadata.texts.classifiers == ("A", "B")
    assert metadata.texts.files == (("licenses/TERMS", "Gr��e"), ("COPYING", "copy"))


def test_read_metadata_reads_no_licence_file_outside_the_package(
    tmp_path: Path,
) -> None:
    """`License-File: ../../secret` is a package's word, not a permission."""
    (tmp_path / "secret").write_text("secret")
    path = make_package(
        tmp_path, "demo-1.0.dist-info", "Name: demo\nLicense-File: ../secret\n"
    )
    (path / "LICENSE").symlink_to(tmp_path / "secret")
    assert read_metadata(path).texts.files == ()


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (b"Name: demo\nSummary: caf\xc3", "not UTF-8 at byte 23"),
        (None, "No such file"),
        (b"", "no Name field"),
        (b"\x00\x01\x02", "no Name field"),
    ],
)
def test_read_metadata_damaged_is_refused_with_the_reason(
    tmp_path: Path, metadata: bytes | None, reason: str
) -> None:
    """A truncated, missing, empty or binary file names itself and the fault."""
    path = make_package(tmp_path, "demo-1.0.dist-info", metadata)
    with pytest.raises(UnreadableMetadataError, match=reason) as caught:
        read_metadata(path)
    assert str(path) in str(caught.value)
