"""Questions to people: which are open, and answering one by its id."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from stateknot.api import shapes
from stateknot.api.bodies import AnswerBody, parse
from stateknot.api.endpoint import Endpoint, require_allowed
from stateknot.api.paging import IdCursor
from stateknot.api.parameters import query_parameters
from stateknot.api.projection import show_asked, show_run
from stateknot.api.queries import Query, QuestionQuery, read_query
from stateknot.api.repeating import repeatable
from stateknot.errors import AlreadyAnsweredError, ResumeError
from stateknot.kernel.vocabulary import WaitStatus
from stateknot.selectors.access import limit
from stateknot.selectors.questions import get_visible_question, list_questions
from stateknot.services import resume_run

if TYPE_CHECKING:
    from rest_framework.request import Request

    from stateknot.models import Wait

VIEW_QUESTIONS = "stateknot.view_wait"


class QuestionList(Endpoint):
    """The questions to people; a child run's are asked by its root."""

    tag = "questions"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {"GET": (VIEW_QUESTIONS,)}

    @extend_schema(
        operation_id="list_questions",
        parameters=query_parameters(QuestionQuery),
        responses=shapes.QuestionPage,
    )
    def get(self, request: Request) -> Response:
        """List questions, oldest first; the open ones unless asked for others."""
        query = read_query(QuestionQuery, request)
        rows = list_questions(
            graph_id=query.graph,
            thread_id=query.thread_id,
            status=query.status.value,
            since=query.since,
        )
        pages = IdCursor(query.limit, newest_first=False)
        seen = limit(rows, request.user)
        found = pages.paginate_queryset(seen, request, view=self)
        page = shapes.QuestionPage(
            next=pages.get_next_link(),
            previous=pages.get_previous_link(),
            results=[show_asked(wait) for wait in found or ()],
        )
        return Response(page.model_dump(mode="json"))


class QuestionDetail(Endpoint):
    """One question."""

    tag = "questions"
    permissions = QuestionList.permissions

    @extend_schema(operation_id="get_question", responses=shapes.AskedQuestion)
    def get(self, request: Request, question_id: str) -> Response:
        """Read a question, open or not."""
        read_query(Query, request)
        shown = show_asked(get_visible_question(request.user, question_id))
        return Response(shown.model_dump(mode="json"))


class QuestionAnswer(Endpoint):
    """Answers one question."""

    tag = "questions"
    permissions: ClassVar[dict[str, tuple[str, ...]]] = {
        "POST": ("stateknot.answer_wait",)
    }

    @extend_schema(
        operation_id="answer_question",
        request=AnswerBody,
        responses={202: shapes.Run},
    )
    @repeatable
    def post(self, request: Request, question_id: str) -> Response:
        """Answer an open question; its run goes on once none is left."""
        body = parse(AnswerBody, request.data)
        wait = get_visible_question(request.user, question_id)
        require_allowed(request, wait.thread, "answer_wait")
        _require_open(wait)
        run = resume_run(
            wait.thread.key,
            body.value,
            interrupt_id=wait.question_id or str(wait.id),
            actor=request.user,
        )
        return Response(show_run(run).model_dump(mode="json"), status=202)


def _require_open(wait: Wait) -> None:
    """Refuse a question that needs no answer, also where its run has ended since."""
    if wait.answered_at is not None:
        by = f" by {wait.answered_by}" if wait.answered_by else ""
        raise AlreadyAnsweredError(
            f"question {wait.id} was answered{by}; its first answer is kept"
        )
    if wait.status != WaitStatus.OPEN:
        raise ResumeError(f"question {wait.id} is closed: its run went on without it")
