"""What is measured: each workload does its work once and gives samples by name.

`workloads_of` lists those of one database; each gets threads of its own. Read
`graphs.py` for the graphs and `measuring.py` for how often they run.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from bench import compiling, graphs, processes, workers
from bench.databases import POSTGRES
from bench.measuring import Sample
from stateknot import Command, MemoryCheckpointer
from stateknot.storage import DjangoCheckpointer
from tests.recorded_graphs import find_recorded_names, read_recorded

if TYPE_CHECKING:
    from bench.databases import Database
    from stateknot import CompiledGraph
    from stateknot.kernel.store import Store

Work = Callable[[], dict[str, Sample]]

CHAIN, LONG, PARENT_STEPS, CHILD_STEPS, ROUNDS, QUESTIONS = 200, 1_000, 10, 5, 12, 10
READS, MARGIN, SHORT_RUNS, PROCESSES = 20, 50, 200, 4
THREADS = (1, 2, 8)

_numbers = count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A named piece of work; `work` may measure several things."""

    name: str
    work: Work


def _thread() -> str:
    return f"bench-{next(_numbers)}"


def _timed(
    name: str, unit: str, units: float, work: Callable[[], Any], *, stored: bool = True
) -> dict[str, Sample]:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    return {name: Sample(unit=unit, units=units, seconds=seconds, stored=stored)}


def _run(name: str, graph: CompiledGraph, steps: int) -> dict[str, Sample]:
    run = partial(graph.run_with_thread, _thread(), {"upto": steps})
    return _timed(name, "supersteps", steps, run)


def _chain(name: str, store: Store, mode: str) -> Workload:
    graph = graphs.chain().with_checkpointer(store).with_durability(mode)
    return Workload(name=name, work=partial(_run, name, graph, CHAIN))


def _heavy(store: Store) -> Workload:
    """What a field costs per superstep; its admission lies before the first mark."""
    marks: list[float] = []
    graph = _marked("heavy", graphs.Heavy, marks).with_checkpointer(store)
    blob = graphs.noise(graphs.FIELD_BYTES)

    def between(blob: str) -> Sample:
        marks.clear()
        graph.run_with_thread(_thread(), {"upto": CHAIN, "blob": blob})
        return _between(marks, 1, CHAIN - 1)

    def work() -> dict[str, Sample]:
        with_field = between(blob)
        return {
            "1 MB field untouched": with_field,
            "the same without it": between(""),
        }

    return Workload(name="1 MB field untouched", work=work)


def _marked(name: str, state: type[graphs.Count], marks: list[float]) -> CompiledGraph:
    """A loop whose node notes the time of each of its calls."""

    def turn(state: graphs.Count) -> dict[str, Any]:
        marks.append(time.perf_counter())
        return {"n": state.n + 1}

    return graphs.loop(name, state, turn)


def _append(store: Store, items: int) -> Workload:
    graph = graphs.growing().with_checkpointer(store)
    name = f"append 1 KB x {items:,}"
    return Workload(name=name, work=partial(_run, name, graph, items))


def _fan(store: Store) -> Workload:
    graph = graphs.fan().with_checkpointer(store)

    def work() -> dict[str, Sample]:
        run = partial(graph.run_with_thread, _thread(), {"upto": ROUNDS})
        return _timed("fan-out of 16", "activations", ROUNDS * (graphs.WIDTH + 1), run)

    return Workload(name="fan-out of 16", work=work)


def _long(store: Store) -> Workload:
    """A thread of 1,000: how fast its ends are written, and how fast it is read."""
    marks: list[float] = []
    graph = _marked("long", graphs.Count, marks).with_checkpointer(store)

    def work() -> dict[str, Sample]:
        marks.clear()
        thread = _thread()
        graph.run_with_thread(thread, {"upto": LONG})
        return {
            "chain at step 100": _between(marks, 100 - MARGIN, 100 + MARGIN),
            "chain at step 1,000": _between(marks, LONG - 2 * MARGIN, LONG - 1),
            **_read("newest state of 1,000", partial(graph.get_state, thread)),
            **_read(
                "last 20 boundaries of 1,000",
                partial(graph.get_state_history, thread, limit=20),
            ),
        }

    return Workload(name="thread of 1,000", work=work)


def _between(marks: list[float], first: int, last: int) -> Sample:
    seconds = marks[last] - marks[first]
    return Sample(unit="supersteps", units=last - first, seconds=seconds, stored=False)


def _read(name: str, read: Callable[[], Any]) -> dict[str, Sample]:
    def work() -> None:
        for _ in range(READS):
            read()

    read()
    return _timed(name, "reads", READS, work, stored=False)


def _read_grown(store: Store) -> Workload:
    """The newest state where each of 1,000 boundaries appended 1 KB to it."""
    graph = graphs.growing().with_checkpointer(store)
    thread = _thread()

    def work() -> dict[str, Sample]:
        if graph.get_state(thread) is None:
            graph.run_with_thread(thread, {"upto": LONG})
        return _read("newest state of 1,000 appends", partial(graph.get_state, thread))

    return Workload(name="state of 1,000 appends", work=work)


def _ask(store: Store) -> Workload:
    graph = graphs.asking().with_checkpointer(store)

    def ask() -> None:
        for _ in range(QUESTIONS):
            thread = _thread()
            graph.run_with_thread(thread, {})
            graph.resume(thread, Command(resume="yes"))

    name = "interrupt round trip"
    return Workload(
        name=name, work=partial(_timed, name, "round trips", QUESTIONS, ask)
    )


def _nest(store: Store) -> Workload:
    graph = graphs.nested(CHILD_STEPS).with_checkpointer(store)
    name, units = "child graph of 5", PARENT_STEPS * (CHILD_STEPS + 1)

    def work() -> dict[str, Sample]:
        run = partial(graph.run_with_thread, _thread(), {"upto": PARENT_STEPS})
        return _timed(name, "supersteps", units, run)

    return Workload(name=name, work=work)


def _short(database: Database) -> Workload:
    name = f"{SHORT_RUNS} short runs, {PROCESSES} processes"

    def work() -> dict[str, Sample]:
        seconds = processes.run_together(database, PROCESSES, SHORT_RUNS // PROCESSES)
        return {name: Sample(unit="runs", units=SHORT_RUNS, seconds=seconds)}

    return Workload(name=name, work=work)


def _through_workers(database: Database) -> list[Workload]:
    """What goes through the queue, on the default database."""
    return [
        Workload(name=name, work=partial(measured, database))
        for name, measured in (
            ("wake-up to first node", workers.measure_wake_ups),
            ("200 short runs, 4 workers", workers.measure_short_runs),
            ("idle worker", workers.measure_idling),
        )
    ]


def _recorded(store: Store, name: str, threads: int) -> Workload:
    drawn = read_recorded(name)
    graph = graphs.recorded(drawn).with_checkpointer(store)
    if threads > 1:
        graph = graph.with_parallel(max_concurrency=threads, spread=False)
    label = f"{name}, {threads} thread{'s' * (threads > 1)}"

    def work() -> dict[str, Sample]:
        run = partial(graph.run_with_thread, _thread(), {})
        return _timed(label, "activations", drawn.tasks, run)

    return Workload(name=label, work=work)


def memory_workloads() -> list[Workload]:
    """What is measured without a database."""
    return [
        _chain("chain of 200, memory", MemoryCheckpointer(), "sync"),
        Workload(name="compose 1,024 nodes", work=compiling.compile_closed),
        Workload(name="build 1,024 nodes", work=compiling.compile_built),
    ]


def workloads_of(database: Database) -> list[Workload]:
    """What is measured on `database`."""
    store = DjangoCheckpointer(database.alias)
    modes = ("sync", "async", "exit")
    return [
        *(_chain(f"chain of {CHAIN}, {mode}", store, mode) for mode in modes),
        _heavy(store),
        _fan(store),
        _append(store, CHAIN),
        _append(store, LONG),
        _long(store),
        _read_grown(store),
        _ask(store),
        _nest(store),
        _short(database),
        *(_through_workers(database) if database.alias == POSTGRES else ()),
        *(
            _recorded(store, name, threads)
            for name in find_recorded_names()
            for threads in THREADS
        ),
    ]
