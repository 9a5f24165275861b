"""Schedules in the admin: made, edited, and held to what code is held to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from stateknot.models import Run, Schedule
from stateknot.services.schedules import start_due
from tests.interfaces.admin_samples import client_of

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

LIST = "admin:stateknot_schedule_changelist"
TYPED = {
    "name": "parcels.daily",
    "graph_id": "tests.admin",
    "cron": "0 6 * * *",
    "time_zone": "Europe/Berlin",
    "input": '{"address": "Quay 1"}',
    "catch_up": "last",
    "catch_up_limit": "10",
    "overlap": "skip",
    "is_enabled": "on",
}


def page_of(schedule: Schedule) -> str:
    return reverse("admin:stateknot_schedule_change", args=[schedule.pk])


def save(client: Client, url: str, **changed: str) -> Any:
    return client.post(url, {**TYPED, **changed})


@pytest.fixture
def schedule(admin_client: Client) -> Schedule:
    """A schedule that was made in the admin."""
    save(admin_client, reverse("admin:stateknot_schedule_add"))
    return Schedule.objects.get()


def test_schedule_made_in_the_admin_starts_runs(schedule: Schedule) -> None:
    assert schedule.next_tick_at > datetime.now(UTC)
    (run_id,) = start_due(schedule.next_tick_at).run_ids
    assert str(Run.objects.get().id) == run_id


def test_edited_expression_begins_with_its_next_tick(
    admin_client: Client, schedule: Schedule
) -> None:
    Schedule.objects.update(next_tick_at=Now() - timedelta(days=2))
    save(admin_client, page_of(schedule), cron="30 * * * *")
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.next_tick_at.minute) == ("30 * * * *", 30)
    assert schedule.next_tick_at > datetime.now(UTC)


def test_schedule_that_is_enabled_again_catches_nothing_up(
    admin_client: Client, schedule: Schedule
) -> None:
    """While it was switched off, nobody wanted its ticks."""
    Schedule.objects.update(is_enabled=False, next_tick_at=Now() - timedelta(days=2))
    save(admin_client, page_of(schedule))
    assert start_due().run_ids == ()


def test_edited_input_leaves_the_next_tick_alone(
    admin_client: Client, schedule: Schedule
) -> None:
    Schedule.objects.update(next_tick_at=datetime(2026, 1, 1, tzinfo=UTC))
    save(admin_client, page_of(schedule), input='{"weight": 3}')
    schedule.refresh_from_db()
    assert schedule.input == '{"weight": 3}'
    assert schedule.next_tick_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cron", "every day"),
        ("time_zone", "Berlin"),
        ("input", "{"),
        ("input", '{"weight": "heavy"}'),
        ("catch_up_limit", "0"),
        ("name", "parcels.other"),
        ("graph_id", "no.such"),
    ],
)
def test_what_cannot_work_is_refused_at_its_field(
    admin_client: Client, schedule: Schedule, field: str, value: str
) -> None:
    Schedule.objects.create(
        name="parcels.other", graph_id="tests.admin", cron="0 1 1 1 1"
    )
    response = save(admin_client, page_of(schedule), **{field: value})
    assert list(response.context["adminform"].form.errors) == [field]
    before = schedule.cron, schedule.input
    schedule.refresh_from_db()
    assert (schedule.cron, schedule.input) == before


def test_page_says_what_became_of_the_ticks(
    admin_client: Client, schedule: Schedule
) -> None:
    assert schedule.next_tick_at
    start_due(schedule.next_tick_at)
    Schedule.objects.update(last_error="StateError: odd")
    text = admin_client.get(page_of(schedule)).content.decode()
    run = Run.objects.get()
    assert reverse("admin:stateknot_run_change", args=[run.id]) in text
    assert "StateError: odd" in text
    assert admin_client.get(reverse(LIST)).status_code == 200


def test_only_who_may_change_schedules_does(schedule: Schedule) -> None:
    reader = client_of("reader", "view_schedule")
    assert reader.get(page_of(schedule)).status_code == 200
    assert save(reader, page_of(schedule), cron="1 1 1 1 1").status_code == 403
    assert save(reader, reverse("admin:stateknot_schedule_add")).status_code == 403
