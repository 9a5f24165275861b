"""Every limit of the engine in one place: value, unit, reason.

Callers that let a user change one take it as a parameter and use these as defaults.
"""

from __future__ import annotations

from typing import Final

RECURSION_LIMIT: Final = 50
"""Supersteps of a run, unless its graph says otherwise: a loop that nobody meant ends
while its history can still be read."""

MAXIMUM_TOTAL_STEPS: Final = 1_000
"""Supersteps that the default recursion policy admits, whatever the graph says."""

MAXIMUM_DEPTH: Final = 25
"""Levels of graphs that run graphs."""

MAXIMUM_PARALLELISM: Final = 1_024
"""Nodes in a ready set: the ceiling of the canonical definition."""

MAXIMUM_SENDS: Final = 10_000
"""Activations that one superstep may schedule by Send: each is an entry in the pending
list of one record."""

MAXIMUM_VALUE_BYTES: Final = 2 * 1024 * 1024
"""Encoded bytes of one field's value, or of the items one superstep appends to it."""

MAXIMUM_NESTING: Final = 100
"""Lists and mappings inside each other in one value: JSON readers give up at 200 (that
of pydantic) and later, each with an error of its own."""

MAXIMUM_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON reader holds exactly."""

MAXIMUM_CODE: Final = 128
"""Characters of a failure's code and of its error's type, which have a column."""

MAXIMUM_ERROR_TEXT: Final = 8_000
"""Characters kept of an error's message; tracebacks keep four times as many."""

FLUSH_WINDOW_SECONDS: Final = 0.05
"""How long finished results of a concurrent step may wait to be flushed together."""

MAXIMUM_NODES: Final = 1_024
"""Nodes of one definition, and ids of one successor set."""

MAXIMUM_ROUTES_OF_NODE: Final = 256
"""Routes of one node; the routes of a graph are bounded by this times its nodes."""

MAXIMUM_DEFINITION_BYTES: Final = 2 * 1024 * 1024
"""Canonical bytes of one definition: it is stored in one row and read whole."""

MAXIMUM_SUPERSTEPS: Final = 2**63 - 1
"""The largest superstep limit a definition may state: what a database column holds."""

MAXIMUM_ITERATIONS: Final = 1_024
"""Iterations of one composed loop: each becomes nodes, so the node ceiling binds."""

MAXIMUM_KEY: Final = 255
"""Characters of a thread id or an idempotency key: an indexed column holds them
everywhere."""

MAXIMUM_PRIORITY: Final = 2**31 - 1
"""The highest priority of a run, and the lowest with a minus: what a column holds."""

MAXIMUM_NAMESPACE: Final = 512
"""Characters of a joined namespace: what its column holds. A level takes its node id
and about ten characters."""

MAXIMUM_QUESTIONS: Final = 64
"""Questions that one activation may ask at once: a person answers them one by one."""

MAXIMUM_QUESTION_KEY: Final = 200
"""Characters of a question's key, and of the id that its author gave it."""

MAXIMUM_SCHEDULE_NAME: Final = 128
"""Characters of a schedule's name: with a time behind it, it is a thread id."""

MAXIMUM_CATCH_UP: Final = 1_000
"""Missed ticks that one schedule may start at once, and that are counted as skipped in
one pass."""
