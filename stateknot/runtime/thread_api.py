"""Reading and editing threads through a compiled graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stateknot.errors import CheckpointError
from stateknot.kernel.writes import Cancellation
from stateknot.runtime.configured import ConfiguredGraph
from stateknot.runtime.events import EventLog
from stateknot.runtime.execution import config_of, may_have_questions, snapshot_of
from stateknot.runtime.manual import Editor
from stateknot.runtime.telling import SAVED
from stateknot.runtime.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stateknot.kernel.records import CheckpointRecord, WaitRecord
    from stateknot.kernel.store import Store
    from stateknot.kernel.vocabulary import RunStatus
    from stateknot.runtime.execution import StateSnapshot


class ThreadApi(ConfiguredGraph):
    """The thread operations of a compiled graph; they need its checkpointer."""

    def get_state(
        self, thread_id: str, checkpoint_id: str | None = None
    ) -> StateSnapshot | None:
        """The newest checkpoint, or the one named; None if unknown."""
        store = self._store()
        record = store.find_checkpoint(thread_id, checkpoint_id, self.config.namespace)
        if record is None:
            return None
        waits = self._waits(store, thread_id, [record])
        return snapshot_of(record, waits, self.blueprint.fold.codec)

    def get_state_history(
        self, thread_id: str, limit: int | None = None, before: str | None = None
    ) -> list[StateSnapshot]:
        """The newest checkpoint and its ancestors, newest first.

        `limit` keeps the newest; `before` names a checkpoint and starts at its parent.
        """
        store = self._store()
        namespace = self.config.namespace
        records = store.list_checkpoints(
            thread_id, namespace=namespace, limit=limit, before=before
        )
        waits = self._waits(store, thread_id, records)
        codec = self.blueprint.fold.codec
        return [snapshot_of(record, waits, codec) for record in records]

    def update_state(
        self,
        thread_id: str,
        update: Any,
        as_node: str | None = None,
        *,
        expected_checkpoint_id: str | None = None,
    ) -> dict[str, Any]:
        """Write a checkpoint with `update` folded in; gives its config."""
        store = self._store()
        with store.atomic():
            record = self._editor(store).update(
                thread_id, update, as_node=as_node, expected=expected_checkpoint_id
            )
        self._tell_saved(thread_id, record.id)
        return config_of(record)

    def bulk_update_state(
        self, thread_id: str, updates: Sequence[Any]
    ) -> dict[str, Any]:
        """Write several updates, all or none; gives the config of the last.

        Each is an update, or a pair of update and `as_node`.
        """
        store = self._store()
        if not updates:
            raise CheckpointError("a bulk update needs at least one update")
        editor = self._editor(store)
        records = []
        with store.atomic():
            for item in updates:
                update, as_node = item if isinstance(item, tuple) else (item, None)
                records.append(editor.update(thread_id, update, as_node=as_node))
        for record in records:
            self._tell_saved(thread_id, record.id)
        return config_of(records[-1])

    def fork_state(
        self, source_thread: str, target_thread: str, checkpoint_id: str | None = None
    ) -> dict[str, Any]:
        """Begin `target_thread` with a copy of a checkpoint; gives its config."""
        store = self._store()
        with store.atomic():
            run = self._editor(store).fork(
                source_thread,
                target_thread,
                checkpoint_id=checkpoint_id,
                digest=self.definition.digest,
                version=self.blueprint.version,
                definition=self.definition.to_dict(),
            )
        self._tell_saved(run.thread_id, run.head_id)
        return {
            "thread_id": run.thread_id,
            "checkpoint_id": run.head_id,
            "namespace": list(run.namespace),
        }

    def cancel(self, thread_id: str, *, reason: str = "") -> RunStatus:
        """End the thread's run as cancelled, and the child runs it has; its status.

        A run that somebody drives is asked to stop and is `running` until it did:
        after the superstep it is in, or once its lease ran out. Raises RunError for a
        run that ended otherwise, CheckpointError for a thread without one.
        """
        store = self._store()
        run = store.find_thread_run(thread_id, self.config.namespace)
        if run is None:
            raise CheckpointError(f"no run found on thread {thread_id!r}")
        with store.atomic():
            cancelled = store.cancel(Cancellation(run_id=run.id, reason=reason))
        return cancelled.status

    def _waits(
        self, store: Store, thread_id: str, records: list[CheckpointRecord]
    ) -> list[WaitRecord]:
        if not may_have_questions(records):
            return []
        return store.list_waits(thread_id, self.config.namespace)

    def _editor(self, store: Store) -> Editor:
        return Editor(
            blueprint=self.blueprint,
            config=self.config,
            store=store,
            digest=self.definition.digest,
        )

    def _store(self) -> Store:
        if self.config.checkpointer is None:
            raise CheckpointError("no checkpointer configured; use with_checkpointer()")
        return self.config.checkpointer

    def _tell_saved(self, thread_id: str, checkpoint_id: str) -> None:
        log = EventLog(self.config.sinks)
        log.tell(SAVED, live_only=True, checkpoint=checkpoint_id)
        if self.config.journal is None and self.config.status_store is None:
            return
        store = self._store()
        run = store.find_thread_run(thread_id, self.config.namespace)
        if run is not None:
            watch = Watch(self.config, store, run)
            log.attach(watch.sinks)
            watch.close()
