"""The OpenAPI document of this API: ours alone, whatever else the project serves."""

from __future__ import annotations

from typing import Any

from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from stateknot.api.endpoint import Endpoint, ProblemsMixin


class OwnGenerator(SchemaGenerator):
    """Describes our views under a title of our own.

    Not by patching drf-spectacular's settings: they belong to the project, and a patch
    is seen by every thread.
    """

    def _get_paths_and_endpoints(self) -> list[Any]:
        inherited: Any = super()
        found = inherited._get_paths_and_endpoints()
        return [entry for entry in found if isinstance(entry[3], Endpoint)]

    def get_schema(self, request: Any = None, public: bool = False) -> dict[str, Any]:
        """The document; our shapes are JSON Schema, which OpenAPI takes from 3.1 on."""
        inherited: Any = super()
        document: dict[str, Any] = inherited.get_schema(request=request, public=public)
        about = "Durable graphs: start, read, resume, retry and edit runs."
        info = {"title": "StateKnot", "version": "1", "description": about}
        return document | {"openapi": "3.1.0", "info": info}


class SchemaDocument(ProblemsMixin, SpectacularJSONAPIView):
    """Serves the document as JSON."""

    permission_classes = Endpoint.permission_classes
    permissions: dict[str, tuple[str, ...]] = {}
    generator_class = OwnGenerator
    serve_public = True

    @extend_schema(exclude=True)
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Describe the API."""
        inherited: Any = super()
        response: Response = inherited.get(request, *args, **kwargs)
        return response
