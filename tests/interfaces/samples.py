"""What the tests of API and commands share: graphs, users, and a worker's pass.

`sample.order` fails, asks or completes as its state says; `sample.loop` goes round
until its count is reached, and has a limit below it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import quote

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db.models import QuerySet
from django.test import Client
from pydantic import BaseModel

from stateknot import END, START, GraphBuilder, Interrupt, NodeContext, append
from stateknot.kernel.commands import Secret
from stateknot.models import Run, Thread
from stateknot.registry import register
from stateknot.runtime.worker import drive_run
from stateknot.selectors.access import ObjectAccess
from stateknot.services import start_run
from stateknot.storage import DjangoCheckpointer

API = "/stateknot/api/v1"
ALL = (
    *("start_run", "retry_run", "resume_run", "edit_state", "answer_wait", "view_run"),
    *("move_run", "cancel_run", "fork_thread", "view_wait", "view_graphrevision"),
)
TOKEN = "hunter2-the-secret"


class Approval(BaseModel):
    approved: bool


class Order(BaseModel):
    order_id: int
    checks: Annotated[list[str], append] = []
    broken: bool = False
    questions: int = 0
    approved: bool | None = None
    token: Annotated[str, Secret] = ""


def stock(order: Order) -> dict[str, Any]:
    """Fail while the order is broken."""
    if order.broken:
        raise ValueError("no such article")
    return {"checks": ["stock"]}


def approve(order: Order, ctx: NodeContext) -> Any:
    """Ask as many questions as the order wants, if any."""
    keys = [f"q{number}" for number in range(order.questions)]
    missing = [key for key in keys if key not in ctx.answers]
    if missing:
        return [
            Interrupt({"order": order.order_id, "key": key}, schema=Approval, key=key)
            for key in missing
        ]
    return {"checks": ["approve"], "approved": bool(keys) or None}


def ship(order: Order) -> dict[str, Any]:
    """End."""
    return {"checks": ["ship"]}


class Loop(BaseModel):
    count: int = 0
    until: int = 10


def turn(loop: Loop) -> dict[str, Any]:
    """Count one round."""
    return {"count": loop.count + 1}


def _order_graph() -> Any:
    builder = GraphBuilder("sample.order", state=Order, version="1.2.0", name="Orders")
    for function in (stock, approve, ship):
        builder.add_node(function.__name__, function)
    builder.add_edge("stock", "approve").add_edge("approve", "ship")
    builder.add_edge(START, "stock").add_edge("ship", END)
    return register(builder.compile())


def _loop_graph() -> Any:
    builder = GraphBuilder("sample.loop", state=Loop, version="1.0.0", name="Loop")
    builder.add_node("turn", turn).add_edge(START, "turn")
    builder.add_conditional_edges(
        "turn",
        lambda loop: "more" if loop.count < loop.until else "done",
        {"more": "turn", "done": END},
    )
    return register(builder.with_recursion_limit(5).compile())


order_graph = _order_graph()
loop_graph = _loop_graph()


class Owners(ObjectAccess):
    """A thread belongs to those who started runs on it."""

    def visible(self, user: Any, threads: QuerySet[Thread]) -> QuerySet[Thread]:
        """See the class."""
        return threads.filter(runs__actor=user.get_username())


class Readers(ObjectAccess):
    """Everybody sees everything and does nothing."""

    def allows(self, user: Any, verb: str, thread: Thread) -> bool:
        """See the class."""
        return False


def client_with(*permissions: str) -> Client:
    """Give a client whose user has exactly these permissions of the engine."""
    return client_named(f"user-{len(permissions)}", *permissions)


def client_named(name: str, *permissions: str, **attributes: bool) -> Client:
    """The same for a user of this name; `attributes` are more of its columns."""
    user = get_user_model().objects.create_user(name, **attributes)
    found = Permission.objects.filter(
        content_type__app_label="stateknot", codename__in=permissions
    )
    assert found.count() == len(permissions)
    user.user_permissions.set(found)
    client = Client()
    client.force_login(user)
    return client


def send(
    client: Client, method: str, path: str, body: Any = None, **headers: str
) -> Any:
    """Send JSON to an address of the API; header names have underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, (str, bytes)) else json.dumps(body)
    return client.generic(
        method, f"{API}/{path}", data, content_type="application/json", headers=named
    )


def thread_path(thread_id: str) -> str:
    """Give the address of a thread, percent-encoded."""
    return f"threads/{quote(thread_id, safe='')}"


def start_order(
    thread_id: str, *, driven: bool = True, actor: Any = None, **state: Any
) -> Run:
    """Start an order, and let a worker drive it."""
    run = start_run(
        "sample.order", {"order_id": 7, **state}, thread_id=thread_id, actor=actor
    )
    return drive(run.id) if driven else run


def drive(run_id: Any) -> Run:
    """Drive a run as a worker does, and read its row."""
    drive_run(DjangoCheckpointer(), str(run_id))
    return Run.objects.get(id=run_id)
