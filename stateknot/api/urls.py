"""The addresses of the API, relative to where a project includes them.

A thread's id is percent-encoded in its address. Servers decode `%2F` before Django sees
it, so a GET of an id that itself ends in one of the words below, such as `a/resume`, is
read as that word of a shorter id; every other id is addressed exactly.
"""

from __future__ import annotations

from django.urls import path, re_path, register_converter

from stateknot.api.asked import QuestionAnswer, QuestionDetail, QuestionList
from stateknot.api.edits import ThreadDone, ThreadState
from stateknot.api.endpoint import NoSuchAddress
from stateknot.api.graphs import GraphList, RevisionDetail, RevisionList
from stateknot.api.journal import RunJournal
from stateknot.api.paths import ThreadIdConverter
from stateknot.api.runs import RunCancel, RunDetail, RunList, RunMove
from stateknot.api.schema import SchemaDocument
from stateknot.api.threads import (
    CheckpointDetail,
    CheckpointList,
    ThreadDetail,
    ThreadList,
)
from stateknot.api.verbs import ThreadFork, ThreadResume, ThreadRetry

app_name = "stateknot-api"

register_converter(ThreadIdConverter, "stateknot_thread")
THREAD = "threads/<stateknot_thread:thread_id>"
REVISIONS = "graphs/<str:graph_id>/revisions"
QUESTION = "questions/<str:question_id>"

urlpatterns = [
    path("schema", SchemaDocument.as_view(), name="schema"),
    path("graphs", GraphList.as_view(), name="graphs"),
    path(REVISIONS, RevisionList.as_view(), name="revisions"),
    path(f"{REVISIONS}/<str:digest>", RevisionDetail.as_view(), name="revision"),
    path("questions", QuestionList.as_view(), name="questions"),
    path(QUESTION, QuestionDetail.as_view(), name="question"),
    path(f"{QUESTION}/answer", QuestionAnswer.as_view(), name="answer"),
    path("runs", RunList.as_view(), name="runs"),
    path("runs/<str:run_id>", RunDetail.as_view(), name="run"),
    path("runs/<str:run_id>/move", RunMove.as_view(), name="move"),
    path("runs/<str:run_id>/cancel", RunCancel.as_view(), name="cancel"),
    path("runs/<str:run_id>/journal", RunJournal.as_view(), name="journal"),
    path("threads", ThreadList.as_view(), name="threads"),
    path(f"{THREAD}/fork", ThreadFork.as_view(), name="fork"),
    path(f"{THREAD}/done", ThreadDone.as_view(), name="done"),
    path(f"{THREAD}/resume", ThreadResume.as_view(), name="resume"),
    path(f"{THREAD}/retry", ThreadRetry.as_view(), name="retry"),
    path(f"{THREAD}/state", ThreadState.as_view(), name="state"),
    path(f"{THREAD}/checkpoints", CheckpointList.as_view(), name="checkpoints"),
    path(
        f"{THREAD}/checkpoints/<uuid:checkpoint_id>",
        CheckpointDetail.as_view(),
        name="checkpoint",
    ),
    path(THREAD, ThreadDetail.as_view(), name="thread"),
    # Last: an address that is none of these is a problem document, not a page.
    re_path("", NoSuchAddress.as_view()),
]
