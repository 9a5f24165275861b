"""The graphs that runs can be started of, and their revisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.endpoint import Endpoint
from stateknot.api.projection import show_graph, show_revision, show_revision_detail
from stateknot.api.queries import Query, read_query
from stateknot.errors import NotFoundError
from stateknot.registry import list_graphs
from stateknot.selectors.revisions import get_revision, list_revisions

if TYPE_CHECKING:
    from rest_framework.request import Request


class GraphList(Endpoint):
    """Every registered graph revision."""

    tag = "graphs"

    @extend_schema(operation_id="list_graphs", responses=shapes.GraphPage)
    def get(self, request: Request) -> Response:
        """List the graph revisions of this process, by graph id, the newest last."""
        read_query(Query, request)
        page = shapes.GraphPage(results=[show_graph(graph) for graph in list_graphs()])
        return Response(page.model_dump(mode="json"))


class RevisionList(Endpoint):
    """The revisions of a graph, also those whose code is gone."""

    tag = "graphs"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "GET": ("stateknot.view_graphrevision",)
    }

    @extend_schema(operation_id="list_revisions", responses=shapes.RevisionPage)
    def get(self, request: Request, graph_id: str) -> Response:
        """List what ever ran of a graph or can be started, the newest last."""
        read_query(Query, request)
        found = list_revisions(graph_id, with_runs=False)
        if not found:
            raise NotFoundError(f"no graph {graph_id!r}")
        page = shapes.RevisionPage(results=[show_revision(facts) for facts in found])
        return Response(page.model_dump(mode="json"))


class RevisionDetail(Endpoint):
    """One revision."""

    tag = "graphs"
    permissions = RevisionList.permissions

    @extend_schema(operation_id="get_revision", responses=shapes.RevisionDetail)
    def get(self, request: Request, graph_id: str, digest: str) -> Response:
        """Read a revision with its definition and its topology."""
        read_query(Query, request)
        shown = show_revision_detail(get_revision(graph_id, digest))
        return Response(shown.model_dump(mode="json"))
