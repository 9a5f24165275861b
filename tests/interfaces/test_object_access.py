"""Object rules: what a user may not see is not there, wherever it is looked for."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.core.checks import run_checks
from django.urls import reverse

from stateknot.models import Run, Wait
from stateknot.services import fork_thread
from tests.interfaces import samples
from tests.interfaces.samples import (
    ALL,
    Owners,
    Readers,
    client_named,
    send,
    start_order,
)

pytestmark = pytest.mark.django_db
STATE = {"order_id": 7}
NONE = "0198c5a2-0000-7000-8000-000000000000"


@pytest.fixture
def owners(settings: Any) -> None:
    settings.STATEKNOT = {"object_access": path_of(Owners)}


def path_of(rules: type) -> str:
    return f"{rules.__module__}.{rules.__name__}"


CALLS = [
    ("GET", "runs/{run}", None),
    ("GET", "runs/{run}/journal", None),
    ("POST", "runs/{run}/cancel", {}),
    ("POST", "runs/{run}/move", {"to": "current", "dry_run": True}),
    ("GET", "questions/{wait}", None),
    ("POST", "questions/{wait}/answer", {"value": 1}),
    ("POST", "threads/{thread}/fork", {}),
    ("POST", "threads/{thread}/fork", {"checkpoint_id": "{head}"}),
    ("POST", "threads/{thread}/done", {"node": "approve"}),
    ("GET", "threads/{thread}", None),
    ("GET", "threads/{thread}/checkpoints", None),
    ("GET", "threads/{thread}/checkpoints/{head}", None),
    ("POST", "threads/{thread}/resume", {}),
    ("POST", "threads/{thread}/resume", {"value": 1}),
    ("POST", "threads/{thread}/resume", {"checkpoint_id": "{head}"}),
    ("POST", "threads/{thread}/retry", {}),
    ("PATCH", "threads/{thread}/state", {"update": {}}),
]


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize(("method", "path", "body"), CALLS)
def test_ap_02_foreign_thread_is_answered_like_none(
    method: str, path: str, body: Any
) -> None:
    """AP-02: nothing tells an id that is taken from one that is not."""
    run = start_order("t", questions=1, actor="first")
    known = {"run": str(run.id), "thread": "t", "head": str(run.head_id)}
    known["wait"] = str(Wait.objects.get().id)
    unknown = dict.fromkeys(known, NONE) | {"thread": "none"}
    client = client_named("second", *ALL)
    found, absent = (
        send(client, method, path.format(**ids), _fill(body, ids))
        for ids in (known, unknown)
    )
    assert (found.status_code, absent.status_code) == (404, 404)
    text = found.content.decode()
    for name in known:
        text = text.replace(f"{known[name]!r}", f"{unknown[name]!r}")
    assert text == absent.content.decode()
    own = send(client_named("first", *ALL), method, path.format(**known), {})
    assert own.status_code != 404


def _fill(body: Any, ids: dict[str, str]) -> Any:
    if not isinstance(body, dict):
        return body
    return {
        key: value.format(**ids) if isinstance(value, str) else value
        for key, value in body.items()
    }


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize("query", ["", "?thread_id=t", "?graph=sample.order"])
def test_ap_02_foreign_runs_are_absent_from_lists(query: str) -> None:
    """AP-02: a list never reveals what a detail refuses."""
    start_order("t", actor="first")
    listed = send(client_named("second", *ALL), "GET", f"runs{query}").json()
    assert listed == {"next": None, "previous": None, "results": []}
    own = send(client_named("first", *ALL), "GET", f"runs{query}").json()
    assert len(own["results"]) == 1


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize("path", ["threads", "questions"])
def test_ap_02_foreign_rows_are_absent_from_the_list(path: str) -> None:
    """AP-02: of threads and questions too."""
    start_order("t", questions=1, actor="first")
    listed = send(client_named("second", *ALL), "GET", path).json()
    assert listed == {"next": None, "previous": None, "results": []}
    own = send(client_named("first", *ALL), "GET", path).json()
    assert [row["thread_id"] for row in own["results"]] == ["t"]


@pytest.mark.usefixtures("owners")
def test_ap_02_fork_to_a_foreign_thread_is_not_found() -> None:
    """AP-02: whether an id is taken is not told, nor a lineage put on it."""
    foreign = start_order("foreign", actor="first")
    start_order("own", actor="second")
    client = client_named("second", *ALL)
    answer = send(client, "POST", "threads/own/fork", {"thread_id": "foreign"})
    assert (answer.status_code, "own" in answer.json()["detail"]) == (404, False)
    assert foreign.thread.runs.count() == 1


@pytest.mark.usefixtures("owners")
def test_ap_02_fork_does_not_tell_where_it_comes_from() -> None:
    """AP-02: who sees a copy need not know the thread that was copied."""
    start_order("hidden", actor="first")
    fork_thread("hidden", "copy", actor="second")
    client = client_named("second", *ALL)
    run = Run.objects.get(thread__key="copy")
    journal = send(client, "GET", f"runs/{run.id}/journal")
    assert journal.json()["results"][0]["events"][0]["kind"] == "thread.forked"
    assert "hidden" not in journal.content.decode()


@pytest.mark.usefixtures("owners")
@pytest.mark.parametrize("on_busy", ["reject", "enqueue", "supersede"])
def test_ap_02_start_on_a_foreign_thread_is_not_found(on_busy: str) -> None:
    """AP-02: neither the run that holds the thread is named nor one put behind it."""
    run = start_order("t", driven=False, actor="first")
    body = {"graph": "sample.order", "state": STATE, "thread_id": "t"}
    answer = send(
        client_named("second", *ALL), "POST", "runs", body | {"on_busy": on_busy}
    )
    assert answer.status_code == 404
    assert str(run.id) not in answer.content.decode()
    assert Run.objects.count() == 1


@pytest.mark.usefixtures("owners")
def test_superuser_is_asked_no_rules() -> None:
    run = start_order("t", actor="first")
    client = client_named("root", is_superuser=True)
    assert send(client, "GET", f"runs/{run.id}").status_code == 200


def test_seen_thread_that_may_not_be_acted_on_is_refused(settings: Any) -> None:
    """403 where the thread is seen anyway: then the refusal tells nothing."""
    settings.STATEKNOT = {"object_access": path_of(Readers)}
    start_order("t", questions=1)
    client = client_named("second", *ALL)
    assert send(client, "GET", "threads/t").status_code == 200
    for method, path, body in CALLS:
        if method == "GET" or "threads/" not in path or "{head}" in str(body):
            continue
        answer = send(client, method, path.format(thread="t"), body)
        assert answer.status_code == 403
    start = {"graph": "sample.order", "state": STATE}
    assert send(client, "POST", "runs", start).status_code == 403


@pytest.mark.usefixtures("owners")
def test_ap_02_admin_lists_only_what_its_pages_show() -> None:
    """AP-02: lists, the choices of their filters and the overview's counts alike."""
    foreign = start_order("foreign", broken=True, actor="first")
    start_order("asking", questions=1, actor="first")
    client = client_named("second", *ALL, "view_thread", is_staff=True)
    for model in ("run", "thread", "wait"):
        page = client.get(reverse(f"admin:stateknot_{model}_changelist"))
        assert page.status_code == 200
        assert page.context["cl"].result_count == 0
        text = page.content.decode()
        assert not {"first", "foreign", "asking", "stock"} & set(_words(text))
    overview = client.get(reverse("admin:app_list", args=["stateknot"]))
    assert [need.count for need in overview.context["needs"]] == [0, 0, 0]
    assert overview.context["causes"] == []
    assert overview.context["questions"][0].count == 0
    assert str(foreign.id) not in overview.content.decode()


def _words(text: str) -> list[str]:
    return text.replace("<", " ").replace(">", " ").replace('"', " ").split()


@pytest.mark.usefixtures("owners")
def test_ap_02_admin_page_of_a_foreign_run_is_not_found() -> None:
    """AP-02: its acts and the pages of thread and question as well."""
    run = start_order("t", questions=1, actor="first")
    wait = Wait.objects.get()
    client = client_named("second", *ALL, "view_thread", is_staff=True)
    acts = ("change", "retry", "resume", "edit", "move", "cancel", "live")
    pages = [reverse(f"admin:stateknot_run_{act}", args=[run.id]) for act in acts]
    pages += [
        reverse("admin:stateknot_run_answer", args=[run.id, wait.id]),
        reverse("admin:stateknot_thread_change", args=[run.thread_id]),
        reverse("admin:stateknot_wait_change", args=[wait.id]),
        reverse("admin:stateknot_run_history", args=[run.id]),
    ]
    for page in pages:
        _require_hidden(client.get(page, follow=True))
        if "answer" in page or "retry" in page or "cancel" in page:
            _require_hidden(client.post(page, {}, follow=True))


def _require_hidden(answer: Any) -> None:
    """404, or Django's way from an object that is not there: to the index."""
    if answer.status_code == 404:
        return
    assert answer.redirect_chain[-1][0] == reverse("admin:index")


@pytest.mark.usefixtures("owners")
def test_rules_of_the_how_to_page_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clerks see what they started, and only answer."""
    page = (settings.BASE_DIR / "docs/how-to/object-rules.md").read_text()
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)  # noqa: S102 - ours
    monkeypatch.setattr(samples, "Owners", names["Owners"])
    start_order("other", broken=True, actor="first")
    start_order("own", broken=True, actor="second")
    client = client_named("second", *ALL)
    group = Group.objects.create(name="clerks")
    get_user_model().objects.get(username="second").groups.add(group)
    found = [
        send(client, "POST", f"threads/{key}/{act}", body).status_code
        for key in ("other", "own")
        for act, body in (("retry", {}), ("resume", {"value": 1}))
    ]
    assert found == [404, 404, 403, 403]


@pytest.mark.parametrize(
    "path", ["tests.interfaces.samples.Nothing", "stateknot.conf.get_settings"]
)
def test_rules_that_are_none_are_an_error(settings: Any, path: str) -> None:
    settings.STATEKNOT = {"object_access": path}
    [found] = [m for m in run_checks(tags=["stateknot"]) if m.id == "stateknot.E005"]
    assert path in found.msg
