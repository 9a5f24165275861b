"""Graphs and helpers of the admin's tests: real runs, driven by the real task.

`tests.admin` fails until its state has an address; `tests.admin_ask` asks two things.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, Field

from stateknot import END, START, GraphBuilder, Interrupt, NodeContext, append
from stateknot.kernel.commands import Secret
from stateknot.models import Run
from stateknot.registry import register
from stateknot.services import start_run
from stateknot.tasks import drive

if TYPE_CHECKING:
    from django.http import HttpResponse

SECRET = "sesame-4711"


class Parcel(BaseModel):
    """Has a secret, an accumulating list and text in another script."""

    weight: int = 1
    address: str = ""
    token: Annotated[str, Secret] = SECRET
    notes: Annotated[list[str], append] = []
    label: str = "中国 é"


class Approval(BaseModel):
    """A flat answer."""

    approve: bool = Field(description="Is <b>it</b> right?")
    carrier: Literal["post", "courier"] = "post"
    days: int | None = Field(default=None, ge=0)


builder = GraphBuilder("tests.admin", state=Parcel)


@builder.node
def fetch(parcel: Parcel) -> dict[str, Any]:
    """Fail without an address."""
    if not parcel.address:
        raise ConnectionError("no address")
    return {"notes": ["fetched"]}


@builder.node
def ship(parcel: Parcel) -> dict[str, Any]:
    """Say that it was shipped."""
    return {"notes": ["shipped"]}


builder.add_edge(START, "fetch").add_edge("fetch", "ship").add_edge("ship", END)
register(builder.compile())

asking = GraphBuilder("tests.admin_ask", state=Parcel)


@asking.node
def approve(parcel: Parcel, ctx: NodeContext) -> Any:
    """Ask with a schema and without one."""
    if {"flat", "free"} <= set(ctx.answers):
        return {"notes": [str(ctx.answers["flat"]), str(ctx.answers["free"])]}
    return [
        Interrupt({"question": "Right?"}, schema=Approval, key="flat"),
        Interrupt("Anything <else>?", key="free"),
    ]


asking.add_edge(START, "approve").add_edge("approve", END)
register(asking.compile())


def driven(graph_id: str = "tests.admin", thread_id: str = "t", **state: Any) -> Run:
    """A run driven as far as it goes."""
    return drive_on(start_run(graph_id, Parcel(**state), thread_id=thread_id))


def drive_on(run: Run) -> Run:
    """Drive a run as a worker does, and read it again."""
    drive(str(run.id))
    run.refresh_from_db()
    return run


def client_of(name: str, *permissions: str) -> Client:
    """A browser in which a staff user with these permissions is logged in."""
    user = User.objects.create_user(name, is_staff=True)
    wanted = Permission.objects.filter(
        content_type__app_label="stateknot", codename__in=permissions
    )
    assert len(wanted) == len(permissions)
    user.user_permissions.set(wanted)
    client = Client()
    client.force_login(user)
    return client


def url_of(run: Run, act: str = "change", *rest: Any) -> str:
    """The address of an act on a run; `change` is its page."""
    return reverse(f"admin:stateknot_run_{act}", args=[run.id, *rest])


def form_of(response: HttpResponse) -> dict[str, str]:
    """What the edit form of a page would send as it stands."""
    form = response.context["form"]  # type: ignore[attr-defined]
    return {name: form[name].value() or "" for name in form.fields}
