"""LangGraph and DBOS at the same work, in an environment of their own.

`python bench/peers.py PEER WORKLOAD KIND URL` gets ready, warms up, says so, and then
does the work once for each line that it is sent; it answers with the seconds. It knows
nothing of the engine or of Django: read `peer_runs.py` for who sends the lines.
"""

from __future__ import annotations

import json
import operator
import random
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, TypedDict
from uuid import uuid4

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAIN, ROUNDS, WIDTH, ITEM_BYTES = 200, 12, 16, 1_024
SHORT, SHORT_RUNS = 5, 50
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"
Work = Callable[[], Any]

_numbers = count()


def _items() -> Callable[[int], str]:
    """Gives the n-th item: each its own, so that none is compressed by another."""
    pool = "".join(random.choices(LETTERS, k=CHAIN * ITEM_BYTES))  # noqa: S311
    return lambda n: pool[n * ITEM_BYTES : (n + 1) * ITEM_BYTES]


class State(TypedDict):
    """What the others keep: a count, and a list that grows."""

    n: int
    upto: int
    items: Annotated[list[str], operator.add]


def _langgraph_chain(item: Callable[[int], str] | None) -> Any:
    from langgraph.graph import END, START, StateGraph

    def turn(state: State) -> dict[str, Any]:
        grown = {} if item is None else {"items": [item(state["n"])]}
        return {"n": state["n"] + 1, **grown}

    builder = StateGraph(State)
    builder.add_node("turn", turn)
    builder.add_edge(START, "turn")
    builder.add_conditional_edges(
        "turn", lambda s: END if s["n"] >= s["upto"] else "turn"
    )
    return builder


def _langgraph_sequence() -> Any:
    from langgraph.graph import START, StateGraph

    builder = StateGraph(State)
    names = [f"node{i}" for i in range(SHORT)]
    for before, name in zip([START, *names], names, strict=False):
        builder.add_node(name, lambda s: {"n": s["n"] + 1})
        builder.add_edge(before, name)
    return builder


def _langgraph_fan() -> Any:
    from langgraph.graph import END, START, StateGraph

    builder = StateGraph(State)
    names = [f"part{i:02}" for i in range(WIDTH)]
    for name in names:
        builder.add_node(name, lambda _s, name=name: {"items": [name]})
        builder.add_edge(START, name)
    builder.add_node("join", lambda s: {"n": s["n"] + 1})
    builder.add_edge(names, "join")
    builder.add_conditional_edges(
        "join", lambda s: END if s["n"] >= s["upto"] else names, [*names, END]
    )
    return builder


@contextmanager
def _saver(kind: str, url: str) -> Iterator[Any]:
    if kind == "postgres":
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(url) as saver:
            saver.setup()
            yield saver
        return
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(url, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    saver = SqliteSaver(connection)
    saver.setup()
    yield saver
    connection.close()


@contextmanager
def langgraph(workload: str, kind: str, url: str) -> Iterator[Work]:
    """LangGraph with its checkpointer of that database, durability "sync"."""
    built = _langgraph_fan() if workload == "fan" else None
    built = built or _langgraph_chain(_items() if workload == "append" else None)
    if workload == "short":
        built = _langgraph_sequence()
    upto = ROUNDS if workload == "fan" else CHAIN
    name = uuid4().hex
    with _saver(kind, url) as saver:
        graph = built.compile(checkpointer=saver)

        def run() -> None:
            config = {
                "configurable": {"thread_id": f"{name}-{next(_numbers)}"},
                "recursion_limit": 10_000,
            }
            state = {"n": 0, "upto": upto, "items": []}
            graph.invoke(state, config, durability="sync")

        def work() -> None:
            for _ in range(SHORT_RUNS if workload == "short" else 1):
                run()

        yield work


@contextmanager
def dbos(workload: str, kind: str, url: str) -> Iterator[Work]:
    """DBOS: a workflow of recorded steps; a fan-out are steps in a row."""
    from dbos import DBOS

    place = url if kind == "postgres" else f"sqlite:///{url}"
    DBOS(
        config={
            "name": "bench",
            "system_database_url": place,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )
    item = _items() if workload == "append" else None

    @DBOS.step()
    def step(n: int) -> Any:
        return n + 1 if item is None else item(n)

    @DBOS.workflow()
    def steps(total: int) -> int:
        for n in range(total):
            step(n)
        return total

    DBOS.launch()
    total = ROUNDS * (WIDTH + 1) if workload == "fan" else CHAIN
    yield lambda: steps(total)
    DBOS.destroy()


PEERS = {"langgraph": langgraph, "dbos": dbos}


def main() -> None:
    """Answer each line with the seconds that the work took."""
    peer, workload, kind, url = sys.argv[1:5]
    with PEERS[peer](workload, kind, url) as work:
        work()
        _answer("ready")
        for _ in sys.stdin:
            start = time.perf_counter()
            work()
            _answer(time.perf_counter() - start)


def _answer(value: Any) -> None:
    sys.stdout.write(f"= {json.dumps(value)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
