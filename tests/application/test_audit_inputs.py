"""Requirements files: what is read, what is refused, and with which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.audit.inputs import InputFileError, Requirement, read_requirements

ROOT = Path(__file__).parents[2]


def write(directory: Path, text: str, name: str = "requirements.txt") -> Path:
    file = directory / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def test_requirements_of_every_harmless_form_are_read(tmp_path: Path) -> None:
    """Pins, extras, markers, hashes, comments, continuations and silent options."""
    file = write(
        tmp_path,
        "# comment\n"
        "--index-url https://example.org/simple\n"
        "\n"
        "Django==5.2.1  # the framework\n"
        "psycopg[binary,pool] == 3.2\n"
        'pywin32==306 ; sys_platform == "win32"\n'
        "attrs==25.1 \\\n"
        "    --hash=sha256:aaaa \\\n"
        "    --hash=sha256:bbbb\n"
        "loose>=1,<2\n"
        "bare\n",
    )
    assert read_requirements(file) == [
        Requirement(name="attrs", pin="25.1", marker="", origin=f"{file}:7"),
        Requirement(name="bare", pin="", marker="", origin=f"{file}:11"),
        Requirement(name="Django", pin="5.2.1", marker="", origin=f"{file}:4"),
        Requirement(name="loose", pin="", marker="", origin=f"{file}:10"),
        Requirement(name="psycopg", pin="3.2", marker="", origin=f"{file}:5"),
        Requirement(
            name="pywin32",
            pin="306",
            marker='sys_platform == "win32"',
            origin=f"{file}:6",
        ),
    ]


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt"])
def test_requirements_of_this_repository_are_read(name: str) -> None:
    """The pinned files StateKnot is installed from are valid input."""
    found = read_requirements(ROOT / "requirements" / name)
    lines = (ROOT / "requirements" / name).read_text().splitlines()
    assert len(found) == sum("==" in line.partition("#")[0] for line in lines)
    assert all(requirement.pin for requirement in found)


def test_include_is_relative_to_the_file_that_says_it(tmp_path: Path) -> None:
    """`-r` looks beside its own file; a package named twice counts once."""
    write(tmp_path, "a==1\n-r ../base.txt\n", "deep/dev.txt")
    write(tmp_path, "a==2\nb==1\n", "base.txt")
    found = read_requirements(tmp_path / "deep" / "dev.txt")
    assert [(r.name, r.pin) for r in found] == [("a", "1"), ("b", "1")]


def test_include_of_itself_is_refused(tmp_path: Path) -> None:
    """Files that include each other end in an error, not in a recursion."""
    file = write(tmp_path, "-r other.txt\n")
    write(tmp_path, "\n-r requirements.txt\n", "other.txt")
    with pytest.raises(InputFileError, match=r"other\.txt:2: .*includes itself"):
        read_requirements(file)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Django=5.2", "is no requirement; write name==version"),
        ("Django==", "is no requirement"),
        ("two words", "is no requirement"),
        ("-e .", "names a place, not a package"),
        ("./wheels/a.whl", "names a place, not a package"),
        ("a @ https://example.org/a.whl", "names a place, not a package"),
        ("--frobnicate", "is no option this audit knows; remove the line"),
    ],
)
def test_malformed_line_is_refused_with_file_line_text_reason(
    tmp_path: Path, line: str, reason: str
) -> None:
    """The message says where, shows the line and tells what to do."""
    file = write(tmp_path, f"good==1\n\n{line}\n")
    with pytest.raises(InputFileError) as caught:
        read_requirements(file)
    assert str(caught.value).startswith(f"{file}:3: {line!r} ")
    assert reason in str(caught.value)


def test_missing_file_is_refused_with_the_way_out(tmp_path: Path) -> None:
    """The path and what to give in its place."""
    file = tmp_path / "none.txt"
    with pytest.raises(InputFileError, match="or none to audit this environment") as e:
        read_requirements(file)
    assert str(file) in str(e.value)


def test_missing_include_is_refused_with_the_line(tmp_path: Path) -> None:
    """The including line is named, for that is the one to mend."""
    file = write(tmp_path, "a==1\n-r gone.txt\n")
    with pytest.raises(InputFileError, match=r"requirements\.txt:2: .*gone\.txt"):
        read_requirements(file)


@pytest.mark.parametrize("content", [b"\xff\xfea\x00", b"caf\xe9==1\n"])
def test_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A file that is no UTF-8 text is named with the byte."""
    file = tmp_path / "requirements.txt"
    file.write_bytes(content)
    with pytest.raises(InputFileError, match="not a text file in UTF-8"):
        read_requirements(file)
