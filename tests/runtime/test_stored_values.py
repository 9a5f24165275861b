"""Values between a node and the store: types, sizes, and another process."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings

from stateknot import Command, GraphInput, Interrupt, NodeContext
from stateknot.errors import NodeFailedError, SerializationError, StateError
from stateknot.kernel.limits import MAXIMUM_VALUE_BYTES
from tests.runtime.graphs import add_fan, new_builder
from tests.runtime.typed_values import VALUES, Typed, differences, typed_graph

if TYPE_CHECKING:
    from stateknot.errors import StateKnotError

CHILD = """
import django
django.setup()
from stateknot.storage import DjangoCheckpointer
from tests.runtime.typed_values import differences, typed_graph
graph = typed_graph(DjangoCheckpointer())
for snapshot in graph.get_state_history("t")[:2]:
    print(*differences(snapshot.values), sep="\\n", end="")
print(graph.get_state("t").metadata["step"])
"""


def test_values_come_back_alike(checkpointer: Any) -> None:
    """ST-02, decision 12: equal in value and in type, from a graph made anew."""
    typed_graph(checkpointer).run_with_thread("t", {})
    for snapshot in typed_graph(checkpointer).get_state_history("t")[:2]:
        assert differences(snapshot.values) == []


def test_values_given_at_the_start_come_back_alike(checkpointer: Any) -> None:
    """ST-02: as a model, too."""
    graph = typed_graph(checkpointer)
    done = graph.run_with_thread("t", Typed(**VALUES))
    assert differences(done.state) == []
    assert differences(graph.get_state_history("t")[-1].values) == []


def test_values_written_by_hand_come_back_alike(checkpointer: Any) -> None:
    """ST-02, decision 5: the same profile on that path."""
    graph = typed_graph(checkpointer)
    graph.run_with_thread("t", {})
    graph.update_state("t", {**VALUES, "mood": None})
    assert differences(graph.get_state("t").values)[0].startswith("mood: None")
    graph.fork_state("t", "u")
    assert len(differences(graph.get_state("u").values)) == 1


@pytest.mark.django_db(transaction=True)
def test_values_come_back_alike_in_another_process(
    second_process_env: dict[str, str],
) -> None:
    """ST-02: saved here, loaded by a process that knows the code alone."""
    from stateknot.storage import DjangoCheckpointer

    typed_graph(DjangoCheckpointer()).run_with_thread("t", {})
    done = subprocess.run(
        [sys.executable, "-c", CHILD],
        cwd=Path(settings.BASE_DIR),
        env=second_process_env,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "2\n"


def test_zone_becomes_its_offset(checkpointer: Any) -> None:
    """ST-02, decision 12: the same moment and offset; the name is not kept."""
    berlin = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo("Europe/Berlin"))
    graph = typed_graph(checkpointer)
    graph.run_with_thread("t", {})
    graph.update_state("t", {"at": berlin})
    found = graph.get_state("t").values.at
    assert (found, found.utcoffset()) == (berlin, timedelta(hours=2))


@pytest.mark.parametrize(
    ("update", "path"),
    [
        ({"open": {"a": [1, object()]}}, "open"),
        ({"open": {"a": {"b": float("nan")}}}, "open: .*nan"),
        ({"open": ["x\x00"]}, "open"),
        ({"open": {"a": "\ud800"}}, "open.a"),
        ({"open": 2**53 + 1}, "open"),
        ({"open": {1: "x"}}, "open"),
        ({"open": {1, 2}}, "open"),
        ({"pair": ("x", 1, 2)}, "pair"),
        ({"price": "ten"}, "price"),
    ],
)
def test_value_that_would_change_is_refused(
    update: dict[str, Any], path: str, checkpointer: Any
) -> None:
    """ST-02, ST-01, decision 12: at the node that returned it, with the key path."""
    builder = add_fan(new_builder(state=Typed), {"give": lambda _state: update})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError, match=path) as failed:
        graph.run_with_thread("t", {})
    assert failed.value.node_id == "give"
    assert graph.get_state("t").values == Typed()
    with pytest.raises(StateError, match=path):
        graph.update_state("t", update)


TOO_LARGE = "x" * (MAXIMUM_VALUE_BYTES + 1)


def test_value_that_is_too_large_is_a_failure(checkpointer: Any) -> None:
    """ST-10: key and size are named, and no half of it is stored."""
    builder = add_fan(new_builder(), {"a": lambda _s: {"mark": TOO_LARGE, "total": 1}})
    graph = builder.compile().with_checkpointer(checkpointer)
    with pytest.raises(NodeFailedError, match=r"mark.*2,?097,?15") as failed:
        graph.run_with_thread("t", {})
    assert len(str(failed.value)) < 2_000
    head = graph.get_state("t")
    assert (head.values.total, head.metadata["failed_node"]) == (0, "a")
    assert checkpointer.find_checkpoint("t").values["mark"] == ""


@pytest.mark.parametrize(
    "call",
    [
        lambda graph: graph.run_with_thread("u", {"mark": TOO_LARGE}),
        lambda graph: graph.run_with_thread_inputs(
            "u", {}, [GraphInput.start(TOO_LARGE)]
        ),
        lambda graph: graph.update_state("t", {"mark": TOO_LARGE}),
        lambda graph: graph.resume("t", Command(resume=TOO_LARGE)),
    ],
)
def test_value_that_is_too_large_is_refused_from_callers(
    call: Any, checkpointer: Any
) -> None:
    """ST-10: before anything is written, on whichever way it comes in."""

    def asks(_state: Any, ctx: NodeContext) -> Any:
        return None if ctx.has_resume else Interrupt("?")

    graph = add_fan(new_builder(), {"a": asks}).compile()
    graph = graph.with_checkpointer(checkpointer)
    graph.run_with_thread("t", {})
    before = graph.get_state_history("t")
    refused: type[StateKnotError] = SerializationError
    with pytest.raises((refused, StateError)):
        call(graph)
    assert graph.get_state_history("t") == before
    assert graph.get_state("u") is None


def test_sets_are_stored_in_one_order(checkpointer: Any) -> None:
    """Decision 12: what is stored does not depend on a process's hash seed."""
    graph = typed_graph(checkpointer)
    graph.run_with_thread("t", {})
    stored = checkpointer.find_checkpoint("t").values
    assert (stored["tags"], stored["codes"]) == (["", "a", "b", "ä"], [1, 2, 3])
