"""The author's accumulator of a graph; `blueprint()` compiles it.

Methods that add or set return the builder. Nothing is checked before the graph is
compiled, so that all issues are told at once (`topology.py`). The public `GraphBuilder`
adds `compile()` to this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from stateknot.errors import GraphError
from stateknot.kernel.blueprint import Blueprint, NodeSpec, Relief, RouterSpec
from stateknot.kernel.exports.exported import Exported
from stateknot.kernel.exports.shape import GraphPolicy, GraphShape, shape_of_draft
from stateknot.kernel.fold import StateFold
from stateknot.kernel.handlers import is_async, takes_context
from stateknot.kernel.limits import MAXIMUM_PARALLELISM, RECURSION_LIMIT
from stateknot.kernel.outcome import label_text
from stateknot.kernel.topology import CallDraft, Draft, check_draft
from stateknot.kernel.vocabulary import START

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

    from pydantic import BaseModel

    from stateknot.kernel.retry import RetryPolicy

Function = TypeVar("Function", bound="Callable[..., Any]")


def duration_seconds(value: float | timedelta | None) -> float | None:
    """A duration given as seconds or timedelta, in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else value


class BlueprintBuilder(Exported):
    """Collects nodes and edges of one graph.

    `state` is the pydantic model of the state, `update` of updates where they differ,
    `reducer` a whole-state fold `reducer(state, [(node_id, update), ...])` in place of
    the per-field ones. `version` is the author's label, `M.m.p`.
    """

    def __init__(
        self,
        graph_id: str,
        *,
        state: type[BaseModel],
        version: str = "1.0.0",
        name: str | None = None,
        update: type[BaseModel] | None = None,
        reducer: Callable[[Any, Any], Any] | None = None,
        output: type[BaseModel] | None = None,
    ) -> None:
        self.graph_id = graph_id
        self.name = name or graph_id
        self.version = version
        self.state, self.update, self.reducer, self.output = (
            state,
            update,
            reducer,
            output,
        )
        self._draft = Draft()
        self._recursion_limit = RECURSION_LIMIT
        self._maximum_parallelism = MAXIMUM_PARALLELISM
        self._is_parallel = False
        self._max_concurrency: int | None = None
        self._node_timeout: float | None = None

    def node(
        self,
        function: Function | None = None,
        /,
        *,
        id: str | None = None,
        **options: Any,
    ) -> Any:
        """Add the decorated function as a node named like it; returns the function."""

        def decorate(target: Function) -> Function:
            self.add_node(id or target.__name__, target, **options)
            return target

        return decorate if function is None else decorate(function)

    def add_node(
        self,
        node_id: str,
        function: Callable[..., Any],
        *,
        retry: RetryPolicy | None = None,
        timeout: float | timedelta | None = None,
        destinations: Sequence[str] = (),
        command: bool = False,
        kind: str = "node",
        metadata: Mapping[str, Any] | None = None,
        on_error: Callable[[Any, Any, Exception], Any] | None = None,
        wait_to: Sequence[str] = (),
        transactional: bool = False,
        at_most_once: bool = False,
    ) -> Self:
        """Add a node. `timeout` (seconds or timedelta) bounds each attempt.

        `on_error(state, ctx, error)` is called once the retries are used up; what it
        returns is the node's result. With `wait_to` a question or a timer completes the
        node: it is not run again, and those nodes go on with the answer.

        A `transactional` (sync) handler runs inside the transaction that stores its
        result, on the engine's database: what it writes there and its result commit or
        vanish together. An `at_most_once` node is begun in a commit of its own and
        never run again by itself, whatever becomes of it.
        """
        spec = NodeSpec(
            id=node_id,
            handler=function,
            is_async=is_async(function),
            takes_context=takes_context(node_id, function),
            retry=retry,
            timeout_seconds=duration_seconds(timeout),
            destinations=tuple(label_text(target) for target in destinations),
            is_command=command,
            kind=kind,
            metadata=dict(metadata or {}),
            on_error=on_error,
            wait_to=tuple(label_text(target) for target in wait_to),
            transactional=transactional,
            at_most_once=at_most_once,
        )
        self._draft.nodes.append(spec)
        return self

    def add_command_node(
        self,
        node_id: str,
        function: Callable[..., Any],
        *,
        destinations: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """Add a node that chooses its successors by `goto`, and so has no edges."""
        return self.add_node(
            node_id, function, destinations=destinations, command=True, **options
        )

    def add_edge(self, source: str, target: str | Sequence[str]) -> Self:
        """Lead from `source` to `target`; a list of targets is a fan-out."""
        targets = [target] if isinstance(target, str) else list(target)
        self._draft.edges.extend((source, item) for item in targets)
        return self

    def add_sequence(self, *nodes: Any) -> Self:
        """Lead from each node to the next.

        Takes ids, functions (added under their name) or pairs of id and function.
        """
        items = nodes[0] if len(nodes) == 1 and isinstance(nodes[0], list) else nodes
        ids = [self._sequence_item(item) for item in items]
        for source, target in pairwise(ids):
            self.add_edge(source, target)
        return self

    def _sequence_item(self, item: Any) -> str:
        if isinstance(item, tuple):
            self.add_node(item[0], item[1])
            return str(item[0])
        if callable(item):
            self.add_node(item.__name__, item)
            return str(item.__name__)
        return str(item)

    def add_conditional_edges(
        self,
        source: str,
        router: Callable[[Any], Any],
        routes: Mapping[Any, str] | Sequence[str] | None = None,
    ) -> Self:
        """Let `router(state)` choose among `routes` (label to node, or node ids)."""
        if not isinstance(routes, Mapping):
            routes = {target: target for target in routes or ()}
        labelled = {label_text(k): label_text(v) for k, v in routes.items()}
        self._draft.routers.append((source, router, labelled))
        return self

    def add_waiting_edge(self, sources: str | Sequence[str], target: str) -> Self:
        """Run `target` once all of `sources` have arrived."""
        required = (sources,) if isinstance(sources, str) else tuple(sources)
        self._draft.waiting.append((required, target))
        return self

    def add_barrier_relief(self, source: str, relief: str, barrier: str) -> Self:
        """Count `relief` as arrived at `barrier` when `source` did not take it."""
        self._draft.reliefs.append(
            Relief(source=source, relief=relief, barrier=barrier)
        )
        return self

    def add_port(self, node: str) -> Self:
        """Add a place where a template returns to its caller; nothing runs there."""
        return self.add_node(node, _never_run, kind="port")

    def add_subgraph_call(
        self,
        call_site: str,
        body: Any,
        repeat: str | None = None,
        maximum_iterations: int | None = None,
        returns: Mapping[str, str] | None = None,
    ) -> Self:
        """Run `body` (a builder or a compiled graph) in place of the node `call_site`.

        `returns` says for each port of the body which node comes next. With `repeat`, a
        return through that port runs the body again, up to `maximum_iterations` times
        in all; the last time it leads where `returns` says. The calls become ordinary
        nodes when the graph is compiled.
        """
        routes = {port: label_text(node) for port, node in (returns or {}).items()}
        self.add_node(call_site, _never_run, kind="call")
        self._draft.calls.append(
            CallDraft(
                call_site=call_site,
                body=body,
                repeat=repeat,
                maximum_iterations=maximum_iterations,
                returns=routes,
            )
        )
        return self

    @property
    def calls(self) -> tuple[CallDraft, ...]:
        """The subgraph calls that compiling lowers to ordinary nodes."""
        return tuple(self._draft.calls)

    def set_entry(self, node: str) -> Self:
        """Enter the graph at `node`: the same as an edge from START."""
        return self.add_edge(START, node)

    def set_defaults(
        self,
        *,
        recursion_limit: int | None = None,
        parallel: bool | None = None,
        max_concurrency: int | None = None,
        node_timeout: float | timedelta | None = None,
    ) -> Self:
        """Set several run defaults; what is None stays as it was."""
        if recursion_limit is not None:
            self.with_recursion_limit(recursion_limit)
        if parallel is not None:
            self._is_parallel = parallel
        if max_concurrency is not None:
            self._max_concurrency = max_concurrency or None
        if node_timeout is not None:
            self.with_node_timeout(node_timeout)
        return self

    def with_recursion_limit(self, limit: int) -> Self:
        """End a run that needs more than `limit` supersteps."""
        self._recursion_limit = limit
        return self

    def with_parallel(self, max_concurrency: int | None = None) -> Self:
        """Run the nodes of a superstep side by side, at most `max_concurrency` at once.

        None and 0 mean no limit.
        """
        self._is_parallel, self._max_concurrency = True, max_concurrency or None
        return self

    def with_node_timeout(self, timeout: float | timedelta) -> Self:
        """Bound each attempt of a node that has no timeout of its own."""
        self._node_timeout = duration_seconds(timeout)
        return self

    def shape(self) -> GraphShape:
        """What was added so far, compiled or not."""
        policy = GraphPolicy(
            recursion_limit=self._recursion_limit,
            is_parallel=self._is_parallel,
            max_concurrency=self._max_concurrency,
            node_timeout_seconds=self._node_timeout,
        )
        return shape_of_draft(
            self._draft, graph_id=self.graph_id, name=self.name, policy=policy
        )

    def blueprint(self) -> Blueprint:
        """Compile. Raises the first `GraphError`, with all of them in its `issues`."""
        issues = check_draft(self._draft)
        fold = self._compile_fold(issues)
        if issues or fold is None:
            raise _first_of(issues)
        waiting: dict[str, dict[str, None]] = {}
        for sources, target in self._draft.waiting:
            waiting.setdefault(target, {}).update(dict.fromkeys(sources))
        edges: dict[str, set[str]] = {}
        for source, target in self._draft.edges:
            edges.setdefault(source, set()).add(target)
        return Blueprint(
            graph_id=self.graph_id,
            name=self.name,
            version=self.version,
            fold=fold,
            nodes={spec.id: spec for spec in self._draft.nodes},
            entry=tuple(sorted(edges.pop(START))),
            edges={source: tuple(sorted(targets)) for source, targets in edges.items()},
            routers={
                source: RouterSpec(
                    function=router,
                    routes=routes,
                    name=getattr(router, "__name__", "router"),
                )
                for source, router, routes in self._draft.routers
            },
            waiting={join: tuple(sorted(sources)) for join, sources in waiting.items()},
            reliefs=tuple(self._draft.reliefs),
            recursion_limit=self._recursion_limit,
            maximum_parallelism=self._maximum_parallelism,
            is_parallel=self._is_parallel,
            max_concurrency=self._max_concurrency,
            node_timeout_seconds=self._node_timeout,
            output_model=self.output,
            choices={
                call.call_site: {port: (node,) for port, node in call.returns.items()}
                for call in self._draft.calls
            },
            wait_to={
                spec.id: tuple(sorted(spec.wait_to))
                for spec in self._draft.nodes
                if spec.wait_to
            },
        )

    def _compile_fold(self, issues: list[GraphError]) -> StateFold | None:
        try:
            return StateFold(self.state, update_model=self.update, reducer=self.reducer)
        except GraphError as error:
            issues.extend(error.issues)
            return None


def _never_run(_state: Any) -> None:
    """Stands in for a call-site or a port, which compiling takes away."""


def _first_of(issues: list[GraphError]) -> GraphError:
    first = issues[0]
    first.issues = tuple(issues)
    return first
