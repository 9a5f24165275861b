"""What a compiled graph is called, and how it is set up to run.

`ConfiguredGraph` pairs a blueprint with a `RunConfig`; every `with_*` returns a changed
copy. It runs nothing; read `graph.py` for that.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from stateknot.kernel.blueprint_definition import define
from stateknot.kernel.builder import duration_seconds
from stateknot.kernel.exports.exported import Exported
from stateknot.kernel.exports.shape import shape_of
from stateknot.kernel.vocabulary import DurabilityMode
from stateknot.runtime.events import as_sink
from stateknot.runtime.identity import current_owner

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta
    from typing import Self

    from stateknot.kernel.blueprint import Blueprint
    from stateknot.kernel.composition import GraphComposition
    from stateknot.kernel.definition import GraphDefinition
    from stateknot.kernel.exports.shape import GraphShape
    from stateknot.kernel.retry import RetryPolicy
    from stateknot.kernel.store import Store
    from stateknot.runtime.config import RecursionFrame, RecursionPolicy, RunConfig


class ConfiguredGraph(Exported):
    """A graph and how it is run, without the running."""

    def __init__(
        self,
        blueprint: Blueprint,
        config: RunConfig,
        composition: GraphComposition | None = None,
    ) -> None:
        self.blueprint, self.config = blueprint, config
        self.composition = composition

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.graph_id} {self.version}>"

    @property
    def graph_id(self) -> str:
        """The id under which the graph is registered."""
        return self.blueprint.graph_id

    @property
    def name(self) -> str:
        """The name shown to people."""
        return self.blueprint.name

    @property
    def version(self) -> str:
        """The author's label, `M.m.p`."""
        return self.blueprint.version

    @property
    def namespace(self) -> tuple[str, ...]:
        """Where its records stand among those of graphs that run graphs."""
        return self.config.namespace

    @cached_property
    def definition(self) -> GraphDefinition:
        """The canonical definition; its digest names the revision."""
        return define(self.blueprint, current_owner())

    @property
    def digest(self) -> str:
        """`sha256:` and 64 hex: the name of this graph revision."""
        return self.definition.digest

    def shape(self) -> GraphShape:
        """Its nodes and how they follow each other."""
        return shape_of(self.blueprint)

    def with_checkpointer(self, checkpointer: Store) -> Self:
        """Keep threads in `checkpointer`."""
        return self._with(checkpointer=checkpointer)

    def with_event_sink(self, sink: Any) -> Self:
        """Also tell `sink` (a callable, or an object with `emit`) each event, live."""
        return self._with(sinks=(*self.config.sinks, as_sink(sink)))

    def with_event_journal(self, journal: Any) -> Self:
        """Keep the events of runs in `journal` as well; see `runtime/journal.py`.

        It is written beside the run and neither fails it nor holds it up.
        """
        return self._with(journal=journal)

    def with_status_store(self, store: Any) -> Self:
        """Keep where each run stands in `store`; see `runtime/statuses.py`."""
        return self._with(status_store=store)

    def with_durability(self, mode: DurabilityMode | str) -> Self:
        """Write boundaries before going on, behind the run, or at its end."""
        return self._with(durability=DurabilityMode(mode))

    def with_node_retry(self, policy: RetryPolicy | None) -> Self:
        """Retry nodes that have no policy of their own by `policy`."""
        return self._with(retry=policy)

    def with_namespace(self, namespace: Sequence[str]) -> Self:
        """Keep records under `namespace` of their thread."""
        return self._with(namespace=tuple(namespace))

    def with_recursion_policy(self, policy: RecursionPolicy) -> Self:
        """Bound depth, total steps and visits."""
        return self._with(policy=policy)

    def with_recursion_frames(self, frames: Sequence[RecursionFrame]) -> Self:
        """Run as if `frames`, the root's first, stood above."""
        return self._with(frames=tuple(frames))

    def with_recursion_node(self, node: str | None) -> Self:
        """Say which node hosts the runs of this graph."""
        return self._with(hosting_node=node)

    def with_run_deadline(self, deadline: float | timedelta | None) -> Self:
        """End a run that takes longer (seconds or timedelta), between supersteps."""
        return self._with(deadline_seconds=duration_seconds(deadline))

    def with_parallel(
        self, max_concurrency: int | None = None, spread: bool = False
    ) -> Self:
        """Run a superstep's nodes side by side, at most `max_concurrency` at once.

        With `spread` on several workers, each activation with a lease of its own; in
        the caller's process and on SQLite they run in the one process all the same.
        """
        return self._with(
            is_parallel=True, max_concurrency=max_concurrency or None, spread=spread
        )

    def with_limits(self, *, max_running: int | None = None) -> Self:
        """Let workers drive at most `max_running` runs of this graph at once.

        All workers together; None lifts the limit, and the setting of that name wins.
        Raises ValueError below 1.
        """
        if max_running is not None and max_running < 1:
            raise ValueError(f"max_running is {max_running}; give 1 or more, or None")
        return self._with(max_running=max_running)

    def configured(self, config: RunConfig) -> Self:
        """The same graph, run as `config` says.

        Its definition goes along: a child is configured anew at every call, and
        compiling a definition takes longer than a superstep.
        """
        made = type(self)(self.blueprint, config, self.composition)
        made.__dict__["definition"] = self.definition
        return made

    def _with(self, **changes: Any) -> Self:
        config = replace(self.config, **changes)
        return type(self)(self.blueprint, config, self.composition)
