"""Who may see which thread, and do what to it: the one place that asks the rules.

Lists, pages, actions and the API ask here; the rules are the project's, by the setting
`object_access`. What stands on a thread (runs, questions, checkpoints, the journal) is
seen with the thread. See Note [Not there for whom].

Note [Not there for whom]
~~~~~~~~~~~~~~~~~~~~~~~~~
A thread that a user may not see is answered as one that does not exist, and in the same
words: a refusal would tell which ids are taken. One that is seen and only not acted
upon is refused. So every reader looks among the visible rows first and asks for the
verb after, and counts, choices of filters and replayed answers are read from visible
rows as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from stateknot.conf import get_settings, load_object_access
from stateknot.errors import NotFoundError
from stateknot.models import Run, Thread
from stateknot.storage.rows import as_key, as_uuid

if TYPE_CHECKING:
    from django.db.models import QuerySet

    RowsT = TypeVar("RowsT", bound=QuerySet[Any])


class ObjectAccess:
    """The rules of a project; this one has none beyond the permissions of Django.

    A project's own may derive from it. Neither method is asked for a superuser, nor for
    somebody who lacks the permission itself.
    """

    def visible(self, user: Any, threads: QuerySet[Thread]) -> QuerySet[Thread]:
        """Those of `threads` that `user` may know of; it becomes a subquery."""
        return threads

    def allows(self, user: Any, verb: str, thread: Thread) -> bool:
        """Whether `user` may do `verb`, a permission's codename, to a visible thread.

        For `start_run` and the target of `fork_thread` the thread may be one that is
        not stored yet: it has a graph and, where the caller chose one, a key.
        """
        return True


def get_access() -> ObjectAccess:
    """The rules of this project."""
    found = load_object_access()
    return ObjectAccess() if found is None else found


def limit(rows: RowsT, user: Any, thread: str = "thread") -> RowsT:
    """Those of `rows` whose thread `user` may see; `thread` is the way to it.

    A user of None is the project's own code, for which there are no rules.
    """
    if user is None or user.is_superuser:
        return rows
    every = Thread.objects.using(get_settings().database)
    seen = get_access().visible(user, every)
    # Without rules of its own a list stays the plain query that its indexes are for.
    if seen is every:
        return rows
    return rows.filter(**{f"{thread}__in": seen.values("pk")})


def may(user: Any, verb: str, thread: Thread) -> bool:
    """Whether `user` has the permission `verb`, on this thread."""
    if not user.has_perm(f"stateknot.{verb}"):
        return False
    return bool(user.is_superuser or get_access().allows(user, verb, thread))


def get_visible_run(user: Any, run_id: Any) -> Run:
    """The run, with thread and revision. Raises NotFoundError as for no run at all."""
    uuid = as_uuid(str(run_id))
    rows = Run.objects.using(get_settings().database)
    run: Run | None = None
    if uuid is not None:
        found = rows.select_related("thread", "revision").filter(id=uuid)
        run = limit(found, user).first()
    if run is None:
        raise NotFoundError(f"no run {run_id!r}")
    return run


def get_current_run(user: Any, thread_id: str) -> Run:
    """The run that stands on a thread. Raises NotFoundError as for no thread at all."""
    rows = Run.objects.using(get_settings().database)
    with_rows = rows.select_related("thread", "revision")
    found = with_rows.filter(current_of__key=as_key(thread_id))
    run: Run | None = limit(found, user).first()
    if run is None:
        raise NotFoundError(f"no thread {thread_id!r}")
    return run


def find_thread(user: Any, thread_id: str) -> Thread | None:
    """The thread of that id; None for one that nobody has yet.

    Raises NotFoundError for one that `user` may not see.
    """
    rows = Thread.objects.using(get_settings().database)
    thread: Thread | None = rows.filter(key=as_key(thread_id)).first()
    if (
        thread is not None
        and not limit(rows.filter(pk=thread.pk), user, thread="pk").exists()
    ):
        raise NotFoundError(f"no thread {thread_id!r}")
    return thread
