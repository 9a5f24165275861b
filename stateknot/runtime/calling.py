"""Calling a handler: sync in this thread, async on the loop, both within a timeout.

A sync handler cannot be stopped. One that overruns its timeout is given up by the
thread that waits for it; its own thread may go on, and what it returns is dropped. That
of a transactional node is not given up (`call_here`).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from typing import TYPE_CHECKING, Any

from stateknot.errors import NodeTimeoutError
from stateknot.runtime.stopping import GRACE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from stateknot.runtime.context import NodeContext
    from stateknot.runtime.loop_thread import LoopThread


def call(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    node_id: str,
    is_async: bool,
    timeout: float | None,
    loop: LoopThread,
    at_thread_end: Callable[[], None],
    variables: contextvars.Context,
) -> Any:
    """Call `function`, at most `timeout` seconds long (None is without bound).

    `variables` are the context variables that it sees. Raises what it raises, and
    NodeTimeoutError.
    """
    if is_async:
        work = _bounded(function, arguments, node_id, timeout)
        return loop.run(work, variables)
    if timeout is None:
        return variables.run(function, *arguments)
    in_context = partial(variables.run, function)
    return _call_in_thread(in_context, arguments, node_id, timeout, at_thread_end)


def call_here(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    context: NodeContext,
    *,
    timeout: float | None,
    variables: contextvars.Context,
) -> Any:
    """Call a sync `function` in this thread, on whose connection a transaction is open.

    It cannot be given up before it returns, since the transaction is its own: past its
    timeout `context` says that it is cancelled, and once it returns NodeTimeoutError is
    raised, which undoes what it did.
    """
    if timeout is None:
        return variables.run(function, *arguments)
    last = time.monotonic() + timeout
    context.end_at(last)
    result = variables.run(function, *arguments)
    if time.monotonic() > last:
        raise NodeTimeoutError(context.node_id, timeout)
    return result


async def _bounded(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    node_id: str,
    timeout: float | None,
) -> Any:
    """Await the handler; at its timeout, or with this call, it is cancelled.

    A TimeoutError of the handler's own passes as it is.
    """
    if timeout is None:
        return await function(*arguments)
    task = asyncio.ensure_future(function(*arguments))
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
        raise
    if done:
        return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=1)
    raise NodeTimeoutError(node_id, timeout)


def _call_in_thread(
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    node_id: str,
    timeout: float,
    at_end: Callable[[], None],
) -> Any:
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
            future.set_exception(error)
        finally:
            at_end()

    threading.Thread(target=work, name=f"node-{node_id}", daemon=True).start()
    try:
        return future.result(timeout)
    except FutureTimeoutError:
        if future.done():
            raise
        raise NodeTimeoutError(node_id, timeout) from None
