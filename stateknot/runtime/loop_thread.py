"""An event loop of its own thread, on which async handlers run.

It starts with the first async handler of a drive and ends with the drive. Clients that
a handler keeps open on the loop therefore live as long as the drive does.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import TYPE_CHECKING, Any

from stateknot.errors import RunError
from stateknot.runtime.stopping import GRACE_SECONDS, POLL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextvars import Context

    from stateknot.runtime.stopping import Stop

logger = logging.getLogger("stateknot")

FREEING_SECONDS = 2.0
"""How long the end of a drive waits for threads that its async handlers started. Those
of a handler that timed out cannot be stopped, and must not hold the worker."""


class LoopThread:
    """Runs coroutines from any thread on one loop."""

    def __init__(self, at_end: Callable[[], None], stop: Stop) -> None:
        self._at_end, self._stop = at_end, stop
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, Any], variables: Context) -> Any:
        """Await `work` on the loop and give its result to the calling thread.

        `variables` are the context variables that it sees. When the drive must stop,
        the work is cancelled, and what ends the drive is raised.
        """
        within = _within(work, variables, self._stop)
        return asyncio.run_coroutine_threadsafe(within, self._started()).result()

    def close(self) -> None:
        """End the loop and free what its threads hold."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None:
            return
        freeing = asyncio.run_coroutine_threadsafe(self._free_threads(), loop)
        try:
            freeing.result(FREEING_SECONDS)
        except FutureTimeoutError:
            logger.warning("a thread of an async handler still runs; it is left behind")
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=_serve,
                    args=(self._loop,),
                    name="stateknot-loop",
                    daemon=True,
                )
                self._thread.start()
            return self._loop

    async def _free_threads(self) -> None:
        """Close what the loop's own and its executors' threads opened.

        Django's async ORM runs in one thread of asgiref's, whose connection would
        otherwise stay open.
        """
        self._at_end()
        try:
            from asgiref.sync import sync_to_async
        except ImportError:
            return
        await sync_to_async(self._at_end, thread_sensitive=True)()
        loop = asyncio.get_running_loop()
        await loop.shutdown_asyncgens()
        await loop.shutdown_default_executor()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped.

    A SystemExit of a handler's ends `run_forever` before whoever awaits the handler
    hears of it, so the loop goes on, and the exit is raised in the drive's thread.
    """
    while True:
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            continue
        return


async def _within(
    work: Coroutine[Any, Any, Any], variables: Context, stop: Stop
) -> Any:
    task = asyncio.get_running_loop().create_task(work, context=variables)
    while True:
        await asyncio.wait({task}, timeout=POLL_SECONDS)
        if task.done():
            return task.result()
        if stop.is_set():
            task.cancel()
            await asyncio.wait({task}, timeout=GRACE_SECONDS)
            stop.require_going()


def require_no_loop() -> None:
    """Raise RunError in a thread whose event loop a run would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RunError(
        "a graph runs in the caller's thread and would block this event loop; call "
        "it through asyncio.to_thread(graph.run, state), or start it on the workers"
    )
