"""What is done to a list that this machine has left: its copy is deleted here alone, and nothing of that is posted."""

import asyncio

from punchlist_schemas.errors import Rejection
from punchlistd.domain.commands import Decision
from punchlistd.engine.calls import Arrival, Step, Write
from punchlistd.engine.lists.access import check_access
from punchlistd.engine.lists.loaded import Place
from punchlistd.engine.writing.transaction import OVERTAKEN
from punchlistd.replication.lanes.replica import Parts
from punchlistd.slices import run_through
from punchlistd.store.port import Side


async def delete_here(write: Write, conversation: str, parts: Parts) -> Rejection | None:
    """Let a confirmed deletion become a tombstone in the local log, which answers it; else why not, or the question."""
    while True:
        loaded = await parts.conversations.durable(conversation)
        decision = check_access(write.caller.user, write.params.conversation, loaded.state)
        decision = decision or run_through(parts.transactor.consider(write, loaded))
        if not isinstance(decision, Decision):
            return decision
        key = write.params.key
        side = None if key is None else Side(key, write.fingerprint)
        step = Step(decision.events, write.command.at, write.command.actor, side, decision, write)
        done: asyncio.Future[Rejection | None] = asyncio.get_running_loop().create_future()
        # It leads to no place: the copy ends here.
        first = loaded.state.version + 1
        parts.inbox.submit(Arrival(conversation, first, loaded.place, Place(), [step], done.set_result))
        if (outcome := await done) is not OVERTAKEN:
            return outcome
