"""One graph for each kind of node, which dies where its state says: once.

`pay` writes a row of the project's and a line with its idempotency key into the file
`calls`; `after` follows. The state's `dies` names the point at which the process of the
worker gets SIGKILL.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel

from stateknot import START, CompiledGraph, GraphBuilder, NodeContext

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "transactional": {"transactional": True},
    "at_most_once": {"at_most_once": True},
}
HANDLER, FIRST_FOLD, SECOND_FOLD, NEXT = "handler", "fold 1", "fold 2", "next"
"""Behind what the handler did; where its result is folded; in the node behind it. A
transactional one is folded on trial before its commit, and by the barrier behind it."""


def graph_id(kind: str) -> str:
    return f"once.{kind}"


def die(folder: Path, point: str) -> None:
    """End this process at `point` if it is to die there, and has not before."""
    due = folder / "dies"
    if due.exists() and due.read_text() == point:
        due.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def landed(old: list[str], new: list[str]) -> list[str]:
    """Fold a payment; a process dies at its first or second fold of it."""
    folder = Path(new[0])
    counted = folder / f"folds-{os.getpid()}"
    counted.touch()
    with counted.open("a") as file:
        file.write("x")
    die(folder, f"fold {len(counted.read_text())}")
    return [*old, *new]


class Purchase(BaseModel):
    folder: str
    paid: Annotated[list[str], landed] = []
    is_over: bool = False


def pay(purchase: Purchase, ctx: NodeContext) -> dict[str, Any]:
    """Write the row and the line."""
    from django.contrib.auth.models import Group

    folder = Path(purchase.folder)
    with (folder / "calls").open("a") as file:
        file.write(f"{ctx.idempotency_key}\n")
    Group.objects.create(name=f"paid by {os.getpid()}")
    die(folder, HANDLER)
    return {"paid": [purchase.folder]}


def after(purchase: Purchase) -> dict[str, Any]:
    """End."""
    die(Path(purchase.folder), NEXT)
    return {"is_over": True}


def build_kind(kind: str) -> CompiledGraph:
    """`pay` of that kind, then `after`."""
    builder = GraphBuilder(graph_id(kind), state=Purchase)
    builder.add_node("pay", pay, **KINDS[kind]).add_node("after", after)
    return builder.add_sequence(START, "pay", "after").compile()
