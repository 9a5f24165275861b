"""Run a transactional node that writes to both databases of its project.

Run as a module: prints what stands in each as JSON, the failed attempt's rows and those
of the one that finished.
"""

from __future__ import annotations

import json

import django

from stateknot import START, GraphBuilder, NodeContext
from tests.acceptance.once_site.kinds import Purchase


def main() -> None:
    """See the module."""
    django.setup()
    from django.contrib.auth.models import Group
    from django.core.management import call_command
    from django.db import connections

    from stateknot.errors import NodeFailedError
    from stateknot.models import Run
    from stateknot.storage import DjangoCheckpointer

    inside: dict[str, bool] = {}
    tries: list[int] = []

    def pay(_purchase: Purchase, _ctx: NodeContext) -> None:
        tries.append(len(tries) + 1)
        for alias in ("default", "engine"):
            inside[alias] = connections[alias].in_atomic_block
            Group.objects.using(alias).create(name=f"try {tries[-1]}")
        if len(tries) == 1:
            raise ValueError("the first try fails")

    for alias in ("default", "engine"):
        call_command("migrate", database=alias, verbosity=0)
    builder = GraphBuilder("once.two", state=Purchase).add_edge(START, "pay")
    builder.add_node("pay", pay, transactional=True)
    graph = builder.compile().with_checkpointer(DjangoCheckpointer())
    try:
        graph.run_with_thread("t", {"folder": ""})
    except NodeFailedError:
        graph.retry("t")
    stored = {
        alias: {
            "rows": list(Group.objects.using(alias).values_list("name", flat=True)),
            "runs": Run.objects.using(alias).count(),
            "inside": inside[alias],
        }
        for alias in inside
    }
    print(json.dumps(stored))  # noqa: T201 - read by the test


if __name__ == "__main__":
    main()
