"""Driving a claimed run: in the caller's process, on a worker, or in a parent's node.

One function holds what every drive needs around it: the committer, the heartbeat, and
giving the run back when it could not be brought to rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stateknot.errors import LeaseError
from stateknot.runtime.drive import Drive, DriveEnd
from stateknot.runtime.durability import make_committer
from stateknot.runtime.events import EventLog
from stateknot.runtime.heartbeat import Heartbeat
from stateknot.runtime.stopping import Stop
from stateknot.runtime.watching import Watch

if TYPE_CHECKING:
    from stateknot.kernel.records import Fence, RunRecord
    from stateknot.kernel.store import Store
    from stateknot.runtime.budget import Quantum
    from stateknot.runtime.graph import CompiledGraph
    from stateknot.runtime.position import Position
    from stateknot.runtime.spread_steps import Spreader


def drive_claimed(
    graph: CompiledGraph,
    store: Store,
    run: RunRecord,
    fence: Fence,
    *,
    log: EventLog | None = None,
    quantum: Quantum | None = None,
    position: Position | None = None,
    frees_on_exit: bool = True,
    spreader: Spreader | None = None,
) -> DriveEnd:
    """Drive `run` under `fence` until it rests or the quantum is used.

    `position` is where it stands, for a caller that knows; otherwise it is read. With
    a `spreader` activations that may run side by side are handed to other workers.
    Raises LeaseError when another holder took it. Whatever else is raised (a store that
    fails, an interrupted process), the lease is given back first; a SystemExit's only
    with `frees_on_exit`.
    """
    config = graph.config
    log = log or EventLog(config.sinks)
    watch = Watch(config, store, run)
    log.attach(watch.sinks)
    log.tell("run.started", run_id=run.id, holder=fence.holder, epoch=fence.epoch)
    log.tell("recursion.depth_changed", depth=len(config.frames) + 1)
    stop = Stop(store, fence)
    committer = make_committer(config.durability, store, fence, log, stop)
    drive = Drive(
        graph.blueprint, config, store, fence, committer, drive_claimed, spreader
    )
    try:
        with Heartbeat(store, stop, run.id):
            end = drive.run(run, quantum, position)
    except BaseException as error:
        committer.close()
        if frees_on_exit or not isinstance(error, SystemExit):
            release(store, fence)
        raise
    else:
        watch.rest(end.status)
        return end
    finally:
        committer.close()
        watch.close()


def release(store: Store, fence: Fence) -> bool:
    """Give a lease back; True when the run wants to be driven again."""
    try:
        with store.atomic():
            return store.release(fence)
    except LeaseError:
        return False
