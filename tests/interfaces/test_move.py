"""Moving a run to another revision: by command, over HTTP, in the admin.

Row ids are those of cases/field_reports.md; the service has tests of its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from stateknot.models import JournalEvent, Run
from stateknot.registry import register
from stateknot.selectors import get_run
from stateknot.services import update_state
from tests.application.lines import WithDefault, ask, begun, build
from tests.interfaces.admin_samples import client_of, url_of
from tests.interfaces.samples import client_with, send
from tests.interfaces.test_admin_verbs import post
from tests.interfaces.test_commands import UNKNOWN, call, call_json

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def old(register_only: Any) -> Any:
    """A revision that stops at the question of `b`."""
    graph = build("a", "b", b=ask)
    register_only(graph)
    return graph


@pytest.fixture
def run(old: Any) -> Run:
    """A run that asks."""
    return begun(old)


@pytest.fixture
def renamed(run: Run, old: Any) -> Any:
    """The revision of new runs: `b` is called `b2`."""
    return register(build("a", "b2", b2=ask), superseded=[old])


@pytest.fixture
def grown(run: Run, old: Any) -> Any:
    """The revision of new runs: one more node, one more field."""
    graph = build("a", "b", "c", b=ask, state=WithDefault)
    return register(graph, superseded=[old])


def digest_of(run: Run) -> str:
    return str(get_run(run.id).revision.digest)


def movers(run: Run) -> list[str]:
    rows = JournalEvent.objects.filter(run=run).exclude(actor="")
    return [row.actor for row in rows if b"run.moved" in bytes(row.events)]


def test_command_says_what_happens_before_it_moves(run: Run, grown: Any) -> None:
    """VD-02: what is new is told; the journal names who gave the command."""
    code, text = call("move", str(run.id), "--to", "current")
    assert code == 0
    told = [line.strip() for line in text.splitlines()]
    assert told[told.index("new nodes:") + 1] == "c"
    assert told[told.index("state fields with a new value:") + 1] == "k"
    assert told[-1] == "moved"
    assert digest_of(run) == grown.digest
    (mover,) = movers(run)
    assert mover.startswith("command:")


def test_dry_run_of_the_command_writes_nothing(run: Run, old: Any, grown: Any) -> None:
    code, told = call_json("move", str(run.id), "--to", grown.digest, "--dry-run")
    assert (code, told["is_moved"], told["plan"]["added"]) == (0, False, ["c"])
    assert told["run"]["digest"] == old.digest
    assert movers(run) == []


def test_command_refuses_a_move_that_has_problems(
    run: Run, old: Any, renamed: Any
) -> None:
    """VD-03, VD-09: exit code 6, the missing node is named, nothing changed."""
    for rest in ([], ["--dry-run"]):
        code, text = call("move", str(run.id), "--to", "current", *rest)
        assert code == 6
        assert digest_of(run) == old.digest
    assert "node 'b' is due on thread 't'" in text
    assert "give an alias" in text


def test_command_moves_under_an_alias(run: Run, renamed: Any) -> None:
    """VD-03."""
    rest = ["--to", "current", "--alias", "b=b2"]
    code, told = call_json("move", str(run.id), *rest)
    assert (code, told["is_moved"]) == (0, True)
    assert told["plan"]["renamed"] == {"b": "b2"}
    assert told["run"]["digest"] == renamed.digest


def add_k(values: dict[str, Any]) -> dict[str, Any]:
    """Migrate a state."""
    return {**values, "k": 7}


def test_command_migrates_with_a_function_of_the_project(run: Run, grown: Any) -> None:
    """VD-06."""
    path = f"{__name__}.add_k"
    assert call("move", str(run.id), "--to", "current", "--migrate", path)[0] == 0
    _, told = call_json("show", "t")
    assert told["checkpoint"]["state"]["k"] == 7


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([UNKNOWN, "--to", "current"], 5),
        (["no-uuid", "--to", "current"], 5),
        (["{run}", "--to", "sha256:0"], 5),
    ],
)
def test_command_ends_with_a_code_a_script_can_use(
    run: Run, arguments: list[str], code: int
) -> None:
    named = [argument.format(run=run.id) for argument in arguments]
    assert call("move", *named)[0] == code


def test_api_tells_a_dry_run_and_then_moves(run: Run, old: Any, grown: Any) -> None:
    """VD-02: with the plan, under the caller's name."""
    client = client_with("move_run")
    body = {"to": "current", "dry_run": True}
    dry = send(client, "POST", f"runs/{run.id}/move", body).json()
    assert (dry["is_moved"], dry["run"]["digest"]) == (False, old.digest)
    assert dry["plan"]["changed_fields"] == ["k"]
    answer = send(client, "POST", f"runs/{run.id}/move", {"to": grown.digest})
    assert (answer.status_code, answer.json()["is_moved"]) == (200, True)
    assert answer.json()["run"]["digest"] == grown.digest
    assert movers(run) == ["user-1"]


def test_api_refuses_a_move_that_has_problems(run: Run, old: Any, renamed: Any) -> None:
    """VD-03, VD-09: a problem document with every reason."""
    client = client_with("move_run")
    answer = send(client, "POST", f"runs/{run.id}/move", {"to": "current"})
    told = answer.json()
    assert (answer.status_code, told["code"]) == (409, "run.cannot_move")
    assert (told["expected"], told["found"]) == (old.digest, renamed.digest)
    assert any("'b'" in problem for problem in told["problems"])
    body = {"to": "current", "aliases": {"b": "b2"}}
    assert send(client, "POST", f"runs/{run.id}/move", body).json()["is_moved"]


def plan_page(client: Any, run: Run, **query: str) -> Any:
    answer = client.get(url_of(run, "move"), query)
    assert answer.status_code == 200
    return answer


def sent(page: Any) -> dict[str, str]:
    """What the button of the page sends."""
    context = page.context
    to = context["plan"].to_digest
    return {"shown": context["token"], "to": to, **context["sent"]}


def test_admin_shows_the_plan_and_then_moves(run: Run, grown: Any) -> None:
    """VD-02, AD-04: one journal entry and one of the admin's history."""
    operator = client_of("ada", "view_run", "move_run")
    assert url_of(run, "move") in operator.get(url_of(run)).content.decode()
    page = plan_page(operator, run)
    html = page.content.decode()
    assert "New nodes" in html
    assert grown.digest in html
    assert digest_of(run) != grown.digest
    assert "Moved from" in post(operator, url_of(run, "move"), sent(page))
    assert digest_of(run) == grown.digest
    assert movers(run) == ["ada"]
    assert LogEntry.objects.get(object_id=str(run.id)).user.get_username() == "ada"


def test_admin_offers_new_names_for_nodes_that_are_gone(run: Run, renamed: Any) -> None:
    """VD-03: the problem is shown without a button, then the alias with one."""
    operator = client_of("ada", "view_run", "move_run")
    refused = plan_page(operator, run).content.decode()
    assert "cannot be moved" in refused
    assert "Move the run" not in refused
    assert 'name="alias.b"' in refused
    page = plan_page(operator, run, to=renamed.digest, **{"alias.b": "b2"})
    assert "b → b2" in page.content.decode()
    post(operator, url_of(run, "move"), sent(page))
    assert digest_of(run) == renamed.digest


def test_admin_refuses_a_plan_that_is_stale(run: Run, old: Any, grown: Any) -> None:
    """AD-03: the run has another state than the one that was looked at."""
    operator = client_of("ada", "view_run", "move_run")
    data = sent(plan_page(operator, run))
    update_state("t", {"log": ["by hand"]})
    assert "moved on" in post(operator, url_of(run, "move"), data)
    assert digest_of(run) == old.digest


def test_admin_without_another_revision_has_no_such_button(run: Run) -> None:
    operator = client_of("ada", "view_run", "move_run")
    assert url_of(run, "move") not in operator.get(url_of(run)).content.decode()
    answer = operator.get(url_of(run, "move"), follow=True)
    assert "no other revision" in answer.content.decode()


def test_admin_without_the_permission_is_forbidden(run: Run, grown: Any) -> None:
    """AD-04: neither page nor act."""
    data = sent(plan_page(client_of("ada", "view_run", "move_run"), run))
    other = client_of("bob", "view_run", "retry_run", "edit_state")
    assert other.get(url_of(run, "move")).status_code == 403
    assert other.post(url_of(run, "move"), data).status_code == 403
    assert movers(run) == []
