"""The graphs that runs can be started of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.bodies import Query, parse
from stateknot.api.endpoint import Endpoint
from stateknot.api.projection import show_graph
from stateknot.registry import list_graphs

if TYPE_CHECKING:
    from rest_framework.request import Request


class GraphList(Endpoint):
    """Every registered graph revision."""

    tag = "graphs"

    @extend_schema(operation_id="list_graphs", responses=shapes.GraphPage)
    def get(self, request: Request) -> Response:
        """List the graph revisions of this process, by graph id, the newest last."""
        parse(Query, request.query_params.dict())
        page = shapes.GraphPage(results=[show_graph(graph) for graph in list_graphs()])
        return Response(page.model_dump(mode="json"))
