"""The reading half of the Django store.

Any checkpoint is read with two queries (its row, and the rows its fields stand in),
whatever the length of its thread. Nothing here writes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from django.db.models import BinaryField, Case, F, Q, Value, When

from stateknot.conf import load_usage_provider
from stateknot.kernel.fold import StateDelta
from stateknot.kernel.profile import decode
from stateknot.kernel.usage import UNKNOWN, Usage, add_up
from stateknot.kernel.vocabulary import AttemptStatus
from stateknot.models import Checkpoint, JournalEvent, NodeAttempt, Run, Wait
from stateknot.storage.byte_rows import fetch_bytes
from stateknot.storage.deltas import Places, Segment, assemble, places_of, span_of
from stateknot.storage.rows import (
    STANDING_WAITS,
    as_key,
    as_uuid,
    attempt_record,
    checkpoint_record,
    join_namespace,
    journal_record,
    run_record,
    wait_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stateknot.kernel.records import (
        AttemptRecord,
        CheckpointRecord,
        JournalRecord,
        Namespace,
        RunRecord,
        WaitRecord,
    )
    from stateknot.kernel.vocabulary import JsonValue


class StoreReader:
    """Reads threads on one database alias."""

    using: str

    def find_checkpoint(
        self,
        thread_id: str,
        checkpoint_id: str | None = None,
        namespace: Namespace = (),
    ) -> CheckpointRecord | None:
        """See the port."""
        row = self._find_row(thread_id, checkpoint_id, namespace)
        return None if row is None else self.read_row(row, thread_id)

    def _find_row(
        self, thread_id: str, checkpoint_id: str | None, namespace: Namespace
    ) -> Checkpoint | None:
        rows = Checkpoint.objects.using(self.using)
        if checkpoint_id is not None:
            uuid = as_uuid(checkpoint_id)
            if uuid is None:
                return None
            path = join_namespace(namespace)
            return rows.filter(
                id=uuid, thread__key=as_key(thread_id), namespace=path
            ).first()
        heads = Run.objects.using(self.using)
        if namespace:
            heads = heads.filter(
                thread__key=as_key(thread_id), namespace=join_namespace(namespace)
            ).order_by("-created_at", "-id")
        else:
            heads = heads.filter(current_of__key=as_key(thread_id))
        return rows.filter(id__in=heads.values("head_id")[:1]).first()

    def read_row(self, row: Checkpoint, thread_key: str) -> CheckpointRecord:
        """Put the state of a row together."""
        record = decode(row.record)
        values = self._values(row, places_of(record))
        return checkpoint_record(row, thread_key, values, record)

    def _values(self, row: Checkpoint, places: Places) -> dict[str, JsonValue]:
        own = Segment(sequence=row.sequence, changes=row.changes, appends=row.appends)
        others = [] if row.sequence == row.lineage else self._segments(row, places)
        return assemble([own, *others], places, row.lineage)

    def _segments(self, row: Checkpoint, places: Places) -> Iterable[Segment]:
        """The earlier rows that `row`'s fields stand in; columns only where needed."""
        span = span_of(places, row.lineage)
        rows = Checkpoint.objects.using(self.using).filter(
            thread_id=row.thread_id,
            namespace=row.namespace,
            sequence__gte=row.lineage,
            sequence__lt=row.sequence,
        )
        if span.first_tail is None:
            found = rows.filter(sequence__in=span.wanted)
            whole_rows = fetch_bytes(found.values_list("sequence", "changes"))
            return [Segment(sequence=s, changes=c, appends=None) for s, c in whole_rows]
        nothing: Any = Value(None, output_field=BinaryField())
        in_tail = Q(sequence__gte=span.first_tail, appends__isnull=False)
        as_base: Any = When(sequence__in=span.wanted, then=F("changes"))
        parts = rows.filter(Q(sequence__in=span.wanted) | in_tail).values_list(
            "sequence",
            Case(as_base, default=nothing),
            Case(When(in_tail, then=F("appends")), default=nothing),
        )
        segments = fetch_bytes(parts)
        return [Segment(sequence=s, changes=c, appends=a) for s, c, a in segments]

    def list_checkpoints(
        self,
        thread_id: str,
        *,
        namespace: Namespace = (),
        limit: int | None = None,
        before: str | None = None,
    ) -> list[CheckpointRecord]:
        """See the port. One lineage costs two queries, and one more to the next."""
        start = self._find_row(thread_id, before, namespace)
        if start is not None and before is not None:
            start = self._parent(start)
        found: list[CheckpointRecord] = []
        while start is not None and (limit is None or len(found) < limit):
            room = None if limit is None else limit - len(found)
            page = self._lineage_page(start, room)
            found += self._read_page(page, thread_id)
            last = page[-1]
            start = self._parent(last) if last.sequence == last.lineage else None
        return found

    def _lineage_page(self, start: Checkpoint, room: int | None) -> list[Checkpoint]:
        rows = (
            Checkpoint.objects.using(self.using)
            .filter(
                thread_id=start.thread_id,
                namespace=start.namespace,
                sequence__range=(start.lineage, start.sequence),
            )
            .order_by("-sequence")
        )
        return list(rows if room is None else rows[:room])

    def _parent(self, row: Checkpoint) -> Checkpoint | None:
        """The parent, if it is an older record of the namespace.

        A damaged row that names itself or a newer one would be followed for ever.
        """
        if row.parent_id is None:
            return None
        parents = Checkpoint.objects.using(self.using).filter(
            id=row.parent_id, sequence__lt=row.sequence
        )
        return parents.filter(thread_id=row.thread_id, namespace=row.namespace).first()

    def _read_page(
        self, page: list[Checkpoint], thread_key: str
    ) -> list[CheckpointRecord]:
        """States of consecutive rows: the oldest is read, the others are its deltas."""
        records: list[CheckpointRecord] = []
        values: dict[str, JsonValue] = {}
        for row in reversed(page):
            record = decode(row.record)
            if not records:
                values = self._values(row, places_of(record))
            else:
                appends = {} if row.appends is None else decode(row.appends)
                delta = StateDelta(changes=decode(row.changes), appends=appends)
                values = delta.apply(values)
            records.append(checkpoint_record(row, thread_key, values, record))
        return records[::-1]

    def _runs(self) -> Any:
        return Run.objects.using(self.using).select_related("thread", "revision")

    def _read_run(self, row: Run | None) -> RunRecord | None:
        if row is None:
            return None
        return run_record(row, row.thread.key, row.revision.digest)

    def find_run(self, run_id: str) -> RunRecord | None:
        """See the port."""
        uuid = as_uuid(run_id)
        return (
            None
            if uuid is None
            else self._read_run(self._runs().filter(id=uuid).first())
        )

    def list_children(self, run_id: str) -> list[RunRecord]:
        """See the port."""
        rows = self._runs().filter(parent_run_id=run_id).order_by("created_at", "id")
        return [run_record(row, row.thread.key, row.revision.digest) for row in rows]

    def find_thread_run(
        self, thread_id: str, namespace: Namespace = ()
    ) -> RunRecord | None:
        """See the port."""
        if namespace:
            path = join_namespace(namespace)
            rows = self._runs().filter(thread__key=as_key(thread_id), namespace=path)
            return self._read_run(rows.order_by("-created_at", "-id").first())
        return self._read_run(
            self._runs().filter(current_of__key=as_key(thread_id)).first()
        )

    def list_waits(self, thread_id: str, namespace: Namespace = ()) -> list[WaitRecord]:
        """See the port."""
        rows = Wait.objects.using(self.using).filter(
            thread__key=as_key(thread_id),
            namespace=join_namespace(namespace),
            status__in=STANDING_WAITS,
        )
        ordered = rows.order_by("sequence", "asked_at", "id")
        return [wait_record(row, thread_id) for row in ordered]

    def find_wait(self, wait_id: str) -> WaitRecord | None:
        """See the port."""
        uuid = as_uuid(wait_id)
        rows = Wait.objects.using(self.using).select_related("thread")
        row = rows.filter(id=uuid).first() if uuid else None
        return None if row is None else wait_record(row, row.thread.key)

    def find_question(self, thread_id: str, question_id: str) -> WaitRecord | None:
        """See the port."""
        rows = Wait.objects.using(self.using).filter(thread__key=as_key(thread_id))
        named = Q(question_id=question_id)
        uuid = as_uuid(question_id)
        row = rows.filter(named | Q(id=uuid) if uuid else named).order_by("id").last()
        return None if row is None else wait_record(row, thread_id)

    def list_waits_at(self, checkpoint: CheckpointRecord) -> list[WaitRecord]:
        """See the port."""
        rows = Wait.objects.using(self.using).filter(
            thread__key=checkpoint.thread_id,
            namespace=join_namespace(checkpoint.namespace),
            lineage=checkpoint.lineage,
            sequence__lte=checkpoint.sequence,
        )
        ordered = rows.order_by("sequence", "asked_at", "id")
        return [wait_record(row, checkpoint.thread_id) for row in ordered]

    def list_results(self, run: RunRecord) -> list[AttemptRecord]:
        """See the port."""
        rows = NodeAttempt.objects.using(self.using).filter(
            run_id=run.id, lineage=run.lineage, result__isnull=False, is_folded=False
        )
        return [attempt_record(row) for row in rows.order_by("id")]

    def list_results_at(self, checkpoint: CheckpointRecord) -> list[AttemptRecord]:
        """See the port."""
        rows = NodeAttempt.objects.using(self.using).filter(
            run__thread__key=checkpoint.thread_id,
            run__namespace=join_namespace(checkpoint.namespace),
            lineage=checkpoint.lineage,
            sequence__lte=checkpoint.sequence,
            result__isnull=False,
        )
        return [attempt_record(row) for row in rows.order_by("id")]

    def list_attempts(self, run_id: str) -> list[AttemptRecord]:
        """Every attempt of a run, in the order in which they were recorded."""
        rows = NodeAttempt.objects.using(self.using).filter(run_id=run_id)
        return [attempt_record(row) for row in rows.order_by("sequence", "id")]

    def list_visits(self, run_id: str) -> dict[tuple[int, str], str]:
        """See the port."""
        rows = NodeAttempt.objects.using(self.using).filter(run_id=run_id)
        tried = rows.values_list("lineage", "activation_id", "node_id").distinct()
        return {(lineage, name): node for lineage, name, node in tried}

    def count_tries(
        self,
        run: RunRecord,
        sequence: int,
        status: AttemptStatus = AttemptStatus.FAILED,
    ) -> dict[str, int]:
        """See the port."""
        rows = NodeAttempt.objects.using(self.using).filter(
            run_id=run.id,
            lineage=run.lineage,
            sequence=sequence,
            status=status.value,
        )
        return dict(Counter(rows.values_list("activation_id", flat=True)))

    def measure_usage(self, run_id: str) -> Usage:
        """See the port: what the project's provider says, else the attempts' sum."""
        provider = load_usage_provider()
        if provider is not None:
            told = provider(run_id)
            return UNKNOWN if told is None else Usage(amounts=dict(told))
        rows = NodeAttempt.objects.using(self.using).filter(
            Q(usage__isnull=False) | Q(status=AttemptStatus.LOST.value), run_id=run_id
        )
        return add_up(rows.order_by("id").values_list("node_id", "status", "usage"))

    def list_journal(self, run_id: str, after: int = -1) -> list[JournalRecord]:
        """See the port."""
        uuid = as_uuid(run_id)
        if uuid is None:
            return []
        rows = JournalEvent.objects.using(self.using).filter(
            run_id=uuid, number__gt=after
        )
        return [journal_record(row) for row in rows.order_by("number")]

    def last_sequence(self, thread_id: str, namespace: Namespace = ()) -> int:
        """See the port."""
        newest = (
            Checkpoint.objects.using(self.using)
            .filter(thread__key=as_key(thread_id), namespace=join_namespace(namespace))
            .order_by("-sequence")
            .values_list("sequence", flat=True)
            .first()
        )
        return -1 if newest is None else newest
