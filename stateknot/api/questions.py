"""Which question an answer is for, where a person must not have to guess.

In Python a bare value answers the deciding question. Over HTTP and from a shell the
asker may have seen another one first, so with several open an id is wanted.
"""

from __future__ import annotations

from stateknot.errors import SeveralQuestionsError
from stateknot.kernel.commands import ResumeTarget
from stateknot.runtime.admission import find_standing
from stateknot.runtime.config import RunConfig
from stateknot.storage import DjangoCheckpointer


def choose_question(thread_id: str, checkpoint_id: str | None) -> str | None:
    """The id of the only open question, or None where there is none.

    Naming it keeps the answer from reaching a question asked meanwhile. None as well
    for the only question of an older checkpoint, which is asked anew under another id.
    Raises SeveralQuestionsError listing the ids.
    """
    store, target = DjangoCheckpointer(), ResumeTarget(checkpoint_id)
    standing = find_standing(store, thread_id, target, RunConfig())
    ids = [wait.public_id for wait in standing.questions]
    if len(ids) > 1:
        raise SeveralQuestionsError(
            thread_id=thread_id,
            questions=() if standing.branch else ids,
        )
    return ids[0] if ids and not standing.branch else None
