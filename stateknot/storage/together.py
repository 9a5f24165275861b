"""The transaction that a transactional node's handler stands in.

Owns when it counts as committed. See Note [Behind the commit].

Note [Behind the commit]
~~~~~~~~~~~~~~~~~~~~~~~~
A handler may register `transaction.on_commit` hooks. One that raises does so out of the
atomic block, although everything is committed. Taken for a failure of the node it would
run the node again, so a hook of ours, registered first and so called first, notes that
the commit is behind; what is raised later is logged.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from django.db import connections, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

logger = logging.getLogger("stateknot")


@contextmanager
def node_transaction(using: str) -> Iterator[Callable[[], None]]:
    """A transaction on `using`; what it gives undoes it when it is left.

    Inside another transaction (a test case's) it is a savepoint of that. Raises what
    the block or the commit raises.
    """
    committed: list[bool] = []
    try:
        with transaction.atomic(using=using):
            transaction.on_commit(partial(committed.append, True), using=using)
            yield partial(transaction.set_rollback, True, using=using)
    except Exception:
        if not committed:
            raise
        logger.exception("a hook behind the commit of a transactional node failed")


def has_database(using: str) -> bool:
    """Whether the project has a database under this alias."""
    return using in connections and connections[using].vendor != "unknown"
