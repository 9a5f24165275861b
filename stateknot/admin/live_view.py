"""Whether a run has changed: what the script of a moving run's page asks again and
again.

One query and a few bytes, 304 while nothing happened. The page itself is then fetched
as it is; read `stateknot/static/stateknot/run.js` for the other half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.utils.cache import get_conditional_response
from django.views import View

from stateknot.admin.run_page import MOVING, tag_of
from stateknot.errors import NotFoundError
from stateknot.selectors.access import get_visible_run

if TYPE_CHECKING:
    from stateknot.admin.read_only import ReadOnlyAdmin


class LiveView(View):
    """The state of affairs of a run as JSON, with an ETag."""

    model_admin: ReadOnlyAdmin = None  # type: ignore[assignment]  # as_view() sets it

    def get(self, request: HttpRequest, **kwargs: Any) -> HttpResponseBase:
        """See the class."""
        if not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        try:
            run = get_visible_run(request.user, kwargs["run_id"])
        except NotFoundError as error:
            raise Http404(str(error)) from error
        tag = tag_of(run)
        response = JsonResponse(
            {"status": run.status, "moving": run.status in MOVING},
            headers={"ETag": tag, "Cache-Control": "no-cache, private"},
        )
        found = get_conditional_response(request, tag, None, response)
        return found or response
