"""`stateknot_run`, `_show`, `_resume`, `_retry`: what they print and how they end."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from stateknot.management import driving
from stateknot.models import JournalEvent, Run
from tests.interfaces.samples import TOKEN, drive, start_order

pytestmark = pytest.mark.django_db
UNKNOWN = "0198c5a2-0000-7000-8000-000000000000"


def call(name: str, *arguments: str) -> tuple[int, str]:
    """Call a command; returns its exit code and what it printed."""
    out = io.StringIO()
    try:
        call_command(f"stateknot_{name}", *arguments, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def call_json(name: str, *arguments: str) -> tuple[int, Any]:
    """Call a command with `--json`."""
    code, text = call(name, *arguments, "--json")
    return code, json.loads(text)


def test_run_leaves_the_driving_to_the_workers() -> None:
    code, told = call_json("run", "sample.order", '{"order_id": 7}', "--thread", "t")
    assert (code, told["run"]["status"]) == (0, "pending")
    assert told["run"]["thread_id"] == "t"
    assert told["run"]["actor"].startswith("command:")
    assert drive(told["run"]["id"]).status == "completed"


def test_run_here_drives_to_the_end() -> None:
    code, text = call("run", "sample.order", '{"order_id": 7}', "--here")
    assert code == 0
    assert "is completed after 3 supersteps" in text
    assert '"ship"' in text


@pytest.mark.parametrize(
    ("state", "code", "told"),
    [
        ('{"order_id": 7, "broken": true}', 3, "failed at node stock"),
        ('{"order_id": 7, "questions": 2}', 4, "paused at 2 open questions"),
        ('{"order_id": "x"}', 2, "order_id"),
        ("[7]", 2, "is a JSON object"),
        ('{"order_id": NaN}', 2, "NaN"),
        ("@/nowhere/order.json", 2, "order.json cannot be read"),
    ],
)
def test_run_here_ends_with_the_code_of_its_end(
    state: str, code: int, told: str
) -> None:
    found, text = call("run", "sample.order", state, "--here")
    assert (found, told in text) == (code, True)


def test_run_with_bad_json_shows_the_place() -> None:
    code, text = call("run", "sample.order", '{"order_id": 7,\n "checks": [}')
    assert code == 2
    assert "line 2, column 13" in text
    assert text.splitlines()[-1].index("^") == text.splitlines()[-2].index("}")


def test_run_takes_the_state_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    file.write_text('{"order_id": 12}')
    _, told = call_json("run", "sample.order", f"@{file}")
    assert told["checkpoint"]["state"]["order_id"] == 12


def test_run_takes_the_state_from_standard_input(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"order_id": 13}'))
    _, told = call_json("run", "sample.order", "-")
    assert told["checkpoint"]["state"]["order_id"] == 13


def test_run_of_an_unknown_graph_is_not_found() -> None:
    assert call("run", "sample.none", "{}")[0] == 5


@pytest.mark.parametrize("where", [[], ["--here"]])
def test_run_on_a_busy_thread_is_a_conflict(where: list[str]) -> None:
    start_order("t", driven=False)
    code, text = call("run", "sample.order", '{"order_id": 7}', "--thread", "t", *where)
    assert (code, "is held by run" in text) == (6, True)


def test_run_waits_for_the_workers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait ends with the run's own code; here a worker comes between two looks."""
    monkeypatch.setattr(driving.time, "sleep", lambda _: drive(Run.objects.get().id))
    state = '{"order_id": 7, "broken": true}'
    code, told = call_json("run", "sample.order", state, "--wait")
    assert (code, told["run"]["status"]) == (3, "failed")


def test_run_stops_waiting_after_its_timeout() -> None:
    arguments = ["sample.order", '{"order_id": 7}', "--wait", "--timeout", "0.01"]
    code, text = call("run", *arguments)
    assert (code, "Is a worker up?" in text) == (1, True)
    assert Run.objects.get().status == "pending"


def test_show_tells_where_a_thread_stands() -> None:
    run = start_order("t", questions=1, token=TOKEN)
    code, text = call("show", "t")
    assert code == 4
    assert text.startswith(f"thread t: run {run.id} of sample.order is paused")
    for part in ("next:\n  approve", "questions:\n", '"order": 7', "last boundaries:"):
        assert part in text
    assert TOKEN not in text


def test_show_takes_a_run_at_its_own_head() -> None:
    """An earlier run of a thread is shown as it ended, not as the thread stands."""
    first = start_order("t", order_id=1)
    start_order("t", order_id=2)
    _, told = call_json("show", str(first.id))
    assert told["checkpoint"]["checkpoint_id"] == str(first.head_id)
    assert told["checkpoint"]["state"]["order_id"] == 1
    assert call_json("show", "t")[1]["checkpoint"]["state"]["order_id"] == 2


def test_show_tells_the_error_of_a_failed_run() -> None:
    start_order("t", broken=True)
    code, text = call("show", "t")
    assert (code, "error: node.failed\n  ValueError: no such article" in text) == (
        3,
        True,
    )


@pytest.mark.parametrize("name", ["show", "retry", "resume"])
@pytest.mark.parametrize("thread_id", ["none", UNKNOWN, "a\nb"])
def test_unknown_thread_is_not_found(name: str, thread_id: str) -> None:
    assert call(name, thread_id)[0] == 5


@pytest.mark.parametrize("where", [[], ["--here"]])
def test_resume_answers_the_only_question(where: list[str]) -> None:
    run = start_order("t", questions=1)
    code, _ = call("resume", "t", '{"approved": true}', *where)
    assert code == 0
    assert drive(run.id).status == "completed"


@pytest.mark.parametrize("where", [[], ["--here"]])
def test_resume_with_several_questions_wants_an_id(where: list[str]) -> None:
    start_order("t", questions=2)
    ids = [q["id"] for q in call_json("show", "t")[1]["checkpoint"]["questions"]]
    code, text = call("resume", "t", '{"approved": true}', *where)
    assert (code, all(name in text for name in ids)) == (2, True)
    code, _ = call("resume", "t", '{"approved": true}', "--question", ids[1], *where)
    assert code in (0, 4)
    left = call_json("show", "t")[1]["checkpoint"]["questions"]
    assert [q["id"] for q in left] == ids[:1]


@pytest.mark.parametrize("where", [[], ["--here"]])
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (['{"approved": 3}'], 2),
        (["perhaps"], 2),
        (["--question", "q0"], 2),
        (["true", "--question", "none"], 6),
        (["--checkpoint", UNKNOWN], 5),
    ],
)
def test_resume_that_does_not_fit_changes_nothing(
    arguments: list[str], code: int, where: list[str]
) -> None:
    run = start_order("t", questions=1)
    assert call("resume", "t", *arguments, *where)[0] == code
    assert drive(run.id).status == "interrupted"


@pytest.mark.parametrize("where", [[], ["--here"]])
def test_resume_goes_on_from_an_older_checkpoint(where: list[str]) -> None:
    run = start_order("t")
    shown = call_json("show", "t")[1]["boundaries"]
    older = next(b for b in shown if b["next_nodes"] == ["ship"])["checkpoint_id"]
    assert call("resume", "t", "--checkpoint", older, *where)[0] == 0
    assert drive(run.id).status == "completed"
    assert call_json("show", "t")[1]["boundaries"][1]["checkpoint_id"] == older


@pytest.mark.parametrize("name", ["resume", "retry"])
@pytest.mark.parametrize("where", [[], ["--here"]])
def test_completed_thread_is_a_conflict(name: str, where: list[str]) -> None:
    start_order("t")
    assert call(name, "t", *where)[0] == 6


@pytest.mark.parametrize("where", [[], ["--here"]])
def test_retry_raises_the_limit_of_supersteps(where: list[str]) -> None:
    state = '{"until": 8}'
    assert call("run", "sample.loop", state, "--thread", "l", "--here")[0] == 3
    assert call("retry", "l", "--here")[0] == 3
    assert call("retry", "l", "--step-limit", "20", *where)[0] == 0
    assert drive(Run.objects.get().id).status == "completed"


def test_retry_is_journalled_with_the_operator() -> None:
    run = start_order("t", broken=True)
    call("retry", "t")
    last = JournalEvent.objects.filter(run=run).order_by("number").last()
    assert last
    assert last.actor == driving.command_actor()


@pytest.mark.parametrize("name", ["run", "show", "resume", "retry"])
def test_help_shows_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        call_command(f"stateknot_{name}", "--help")
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert f"  manage.py stateknot_{name} " in text
    assert "exit codes:" in text


def test_limit_of_no_supersteps_is_a_usage_error() -> None:
    with pytest.raises(CommandError, match="supersteps from 1 on"):
        call_command("stateknot_retry", "t", "--step-limit", "0")
