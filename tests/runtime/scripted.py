"""Two stores side by side under one script, for the model of thread operations.

A `Side` is a graph over one store. Its handlers do what the script says for their node;
`calls` notes each call with the activation's key and how it ended, so that work done
twice is seen; `tries` counts them by run, to be held against its journal. `Dying` makes
a store end its process at a chosen write.
"""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from typing import Any

from stateknot import (
    END,
    START,
    Command,
    Interrupt,
    MemoryCheckpointer,
    NodeContext,
    Send,
    Timer,
)
from stateknot.errors import StateKnotError
from tests.runtime.graphs import Tally, new_builder

WRITES = ("admit", "claim", "commit", "finish", "defer", "reopen", "answer", "write")
"""What a store may die at; `fork` is one write, and attempts are noted by time."""

BEHAVIOURS = ("go on", "fail", "refuse", "ask", "ask two", "send", "back", "wait")
NODES = ("a", "b", "c", "join", "last")


class Death(BaseException):
    """The process ends."""


class Dying:
    """A store that dies at its n-th write, and then refuses all others.

    Of branches side by side nobody can say who writes first, so what their threads
    write (the records of their children) is not counted.
    """

    def __init__(self, store: Any) -> None:
        self.store = store
        self._owner = threading.current_thread()
        self.left: int | None = None
        self.is_dead = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        return self._counted(found) if name in WRITES else found

    def _counted(self, write: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            is_counted = threading.current_thread() is self._owner
            if self.left is not None and is_counted:
                self.left -= 1
                self.is_dead = self.is_dead or self.left < 0
            if self.is_dead:
                raise Death
            return write(*args, **kwargs)

        return counted

    def release(self, fence: Any) -> Any:
        """A dead process gives no lease back."""
        if self.is_dead:
            raise Death
        return self.store.release(fence)

    def renew(self, fence: Any) -> Any:
        """A dead process holds nothing any more."""
        if self.is_dead:
            raise Death
        return self.store.renew(fence)

    def record_attempts(self, *args: Any) -> Any:
        """Not counted: whether a result waits for its sibling is a matter of time."""
        if self.is_dead:
            raise Death
        return self.store.record_attempts(*args)


class Side:
    """A graph over one store, its script, and what its handlers did."""

    def __init__(self, store: Any, *, is_parallel: bool) -> None:
        self.store = store
        self.script: dict[str, str] = {}
        self.calls: Counter[tuple[str, str, str]] = Counter()
        self.tries: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self.is_parallel = is_parallel
        self.dying = Dying(store)
        self.graph = self._graph()

    def _graph(self) -> Any:
        """a, b and c side by side; a and b meet in `join`; `last` ends both ways."""
        builder = new_builder("tests.thread_model")
        for node in NODES:
            builder.add_node(node, self._handler(node))
        builder.add_node("worker", self._work)
        builder.add_edge(START, ["a", "b", "c"]).add_waiting_edge(["a", "b"], "join")
        builder.add_edge("c", "last").add_edge("join", "last").add_edge("last", END)
        builder = builder.with_parallel() if self.is_parallel else builder
        return builder.compile().with_checkpointer(self.dying)

    def _handler(self, node: str) -> Any:
        def handler(state: Tally, ctx: NodeContext) -> Any:
            what = self.script.get(node, "go on")
            result = act(what, node, state, ctx)
            self._note(ctx, ended(what, result))
            if what == "fail":
                raise ValueError(f"{node} was told to fail")
            return result

        return handler

    def _work(self, _state: Tally, ctx: NodeContext) -> Any:
        self._note(ctx, "done")
        return {"log": [f"worker {ctx.send_arg}"], "total": ctx.send_arg}

    def _note(self, ctx: NodeContext, how: str) -> None:
        with self._lock:
            self.calls[ctx.idempotency_key, ctx.node_id, how] += 1
            self.tries[ctx.run_id, ctx.idempotency_key] += 1

    def work(self) -> Counter[tuple[str, str]]:
        """How often each node was called, by how the calls ended."""
        found: Counter[tuple[str, str]] = Counter()
        for (_, node, how), times in self.calls.items():
            found[node, how] += times
        return found

    def attempt(self, operation: Any) -> str:
        """Do something; give how it ended, as text that both sides share."""
        try:
            result = operation(self.graph)
        except StateKnotError as error:
            return type(error).__name__
        except Death:
            return "death"
        return str(getattr(result, "status", "done"))

    def restart(self) -> None:
        """Begin a new process: the old one's leases run out at once."""
        expire_leases(self.store)
        self.dying = Dying(self.store)
        self.graph = self._graph()


def act(what: str, node: str, state: Tally, ctx: NodeContext) -> Any:
    """What a node returns that behaves in that way."""
    done: dict[str, Any] = {"log": [f"{node} {ctx.resume}"], "total": 1}
    is_first = sum(entry.startswith(node) for entry in state.log) == 0
    if what == "refuse":
        return {"mark": 5}
    if what == "ask" and not ctx.has_resume:
        return Interrupt(f"{node}?")
    if what == "ask two" and set(ctx.answers) < {"x", "y"}:
        return [Interrupt(f"{node} x?", key="x"), Interrupt(f"{node} y?", key="y")]
    if what == "send":
        return Command(update=done, goto=[Send("worker", 10), Send("worker", 20)])
    if what == "back" and is_first:
        return Command(update=done, goto=["a"])
    if what == "wait":
        return Timer(timedelta(hours=1))
    return done


def ended(what: str, result: Any) -> str:
    """How a call counts: failed, asked, or done."""
    if what in ("fail", "refuse"):
        return "failed"
    return "asked" if isinstance(result, (Interrupt, list)) else "done"


def memory_side(*, is_parallel: bool) -> Side:
    """A side over the memory store."""
    return Side(MemoryCheckpointer(), is_parallel=is_parallel)


def database_side(*, is_parallel: bool) -> Side:
    """A side over the Django store."""
    from stateknot.storage import DjangoCheckpointer

    return Side(DjangoCheckpointer(), is_parallel=is_parallel)


def expire_leases(store: Any) -> None:
    """Let every lease run out, as time does where processes die."""
    if isinstance(store, MemoryCheckpointer):
        for run in store._runs.values():
            run.hold(None)
        return
    from stateknot.models import Run

    # A rested run has no lease, and must get none.
    Run.objects.exclude(holder="").update(lease_expires_at="2020-01-01T00:00:00Z")
