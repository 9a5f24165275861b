"""The reader of imports sees every form of import; the rules rely on it."""

from __future__ import annotations

import pytest

from tests.architecture.source_tree import Module, imports, modules, tracked_files

LOCAL = "def f():\n    import stateknot.models\n"
TYPING = "if TYPE_CHECKING:\n    from stateknot.models import Run\n"
DYNAMIC = "importlib.import_module('stateknot.models')\n"


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("import stateknot.models as m", "stateknot.models"),
        ("from stateknot.models import Run", "stateknot.models.Run"),
        ("from ..models import Run", "stateknot.models.Run"),
        ("from . import fold", "stateknot.kernel.fold"),
        (LOCAL, "stateknot.models"),
        (TYPING, "stateknot.models.Run"),
        (DYNAMIC, "stateknot.models"),
    ],
)
def test_import_in_any_form_is_seen(source: str, target: str) -> None:
    """An import counts where it stands: nested, for types only, or by name."""
    module = Module("stateknot/kernel/barrier.py", source)
    assert [found.target for found in imports(module)] == [target]


def test_relative_import_of_a_package_starts_at_itself() -> None:
    """In `__init__.py` one dot is the package, not its parent."""
    module = Module("stateknot/kernel/__init__.py", "from .fold import fold")
    assert [found.target for found in imports(module)] == ["stateknot.kernel.fold.fold"]


def test_tree_lists_this_file_among_the_modules() -> None:
    """An empty listing would let every rule pass."""
    here = "tests/architecture/test_source_tree.py"
    assert here in tracked_files()
    assert here in {module.path for module in modules("tests")}
    assert "stateknot/registry.py" in {module.path for module in modules("stateknot")}
