"""The README's example runs as written, without Django, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NO_DJANGO = """
import sys
assert not [name for name in sys.modules if name.split(".")[0] == "django"]
"""


def example() -> str:
    found = BLOCK.search((ROOT / "README.md").read_text())
    assert found is not None
    return found[1]


def promised(code: str) -> list[str]:
    """What the comments behind `print` say that it prints."""
    return re.findall(r"^print\(.*\)\s+# (.*)$", code, re.MULTILINE)


def test_first_example_prints_what_it_says() -> None:
    code = example()
    done = subprocess.run(
        [
            sys.executable,
            "-I",
            "-c",
            f"import sys; sys.path[:0] = [{str(ROOT)!r}]\n" + code + NO_DJANGO,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == promised(code)
    assert len(promised(code)) == 2


def test_example_is_short() -> None:
    """A newcomer sees the whole of it: at most 40 lines of code."""
    assert len([line for line in example().splitlines() if line.strip()]) <= 40
