"""The task of a probe: it does nothing, and doing it is the answer.

django-q2 imports it by name in a worker. See Note [Heartbeat of a cluster]; read
`cluster.py` next, which sends the probes.
"""

from __future__ import annotations

PROBE_NAME = "stateknot-probe"


def answer() -> None:
    """Do nothing."""
