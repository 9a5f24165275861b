"""The journal of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.endpoint import Endpoint
from stateknot.api.paging import next_address
from stateknot.api.parameters import query_parameters
from stateknot.api.projection import show_entries
from stateknot.api.queries import JournalQuery, read_query
from stateknot.selectors.access import get_visible_run
from stateknot.storage.rows import journal_record

if TYPE_CHECKING:
    from rest_framework.request import Request


class RunJournal(Endpoint):
    """What happened to a run, in order."""

    tag = "runs"

    @extend_schema(
        operation_id="list_journal",
        parameters=query_parameters(JournalQuery),
        responses=shapes.JournalPage,
    )
    def get(self, request: Request, run_id: str) -> Response:
        """List journal rows, oldest first; poll with `after` the last number seen."""
        query = read_query(JournalQuery, request)
        run = get_visible_run(request.user, run_id)
        rows = run.journal.filter(number__gt=query.after).order_by("number")
        records = [journal_record(row) for row in rows[: query.limit + 1]]
        found = show_entries(records, request.user)
        shown = found[: query.limit]
        more = len(found) > query.limit
        page = shapes.JournalPage(
            next=next_address(request, after=shown[-1].number) if more else None,
            results=shown,
        )
        return Response(page.model_dump(mode="json"))
