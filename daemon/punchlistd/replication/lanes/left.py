"""Deletes the local copy of a list that this machine has left, without posting the deletion."""

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


async def delete_local_copy(write: Write, conversation: str, parts: Parts) -> Rejection | None:
    """Write a confirmed deletion to the local log as a tombstone, which also answers the call.

    Return a rejection if the deletion is impossible or is not confirmed yet.
    """
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
        # The copy no longer follows the space, so its place is empty.
        first = loaded.state.version + 1
        parts.inbox.submit(Arrival(conversation, first, loaded.place, Place(), [step], done.set_result))
        if (outcome := await done) is not OVERTAKEN:
            return outcome
