"""Undoes and redoes changes of a list, and asks first if the undo would lose work."""

from typing import Any

import msgspec

from punchlist.base.actors import THREADS, chats_about
from punchlist.base.text import safe
from punchlist.clients.aio import AsyncConversation
from punchlist.errors import RequestRefused
from punchlist_apps.ui.dialogs import Confirm
from punchlist_apps.ui.program import Program

_LOSSES = ("; lost: ", ": released by ")
"""What a line of a preview contains if the undo loses work, or takes a task from its owner."""
_MAX_LINES = 2
"""Maximum number of undone changes named in the message."""


async def undo_own(program: Program, conversation: AsyncConversation, *, redo: bool = False) -> str:
    """Undo the user's newest change of a list, or redo the newest undo. Return the message for the user."""
    chats = await conversation.client.conversations(kind="chat", limit=THREADS)
    also = chats_about(conversation.id, msgspec.to_builtins(chats.conversations))
    selection = {"of": program.actor, "count": 1, "also": also, "redo": redo}
    preview = await _call(program, conversation, {**selection, "preview": True})
    word = "redo" if redo else "undo"
    if not preview["undone"]:
        return f"You have nothing to {word} here; the history shows the changes of others."
    if any(loss in line for line in preview["undone"] for loss in _LOSSES):
        question = "Redo what you undid?" if redo else "Undo your last change?"
        if not await _ask(program, question, preview):
            return ""
    try:
        # The call is identified by its version, so that changes made since the preview don't matter.
        result = await _call(program, conversation, {"call": preview["calls"][0]})
    except RequestRefused as error:
        return f"Not {'redone' if redo else 'undone'}: {error}"
    return _describe("Redone" if redo else "Undone", result["undone"], program.keys.hint("undo" if redo else "redo"))


async def undo_call(program: Program, conversation: AsyncConversation, call: int, actor: str) -> str:
    """Undo a call of any actor after confirmation. Return the message for the user."""
    preview = await _call(program, conversation, {"call": call, "preview": True})
    if not preview["undone"]:
        return "This change has nothing to undo."
    if not await _ask(program, f"Undo this change by {safe(actor)}?", preview):
        return ""
    result = await _call(program, conversation, {"call": preview["calls"][0]})
    return _describe("Undone", result["undone"], program.keys.hint("redo"))


async def _call(program: Program, conversation: AsyncConversation, selection: dict[str, Any]) -> Any:
    params = {"conversation": conversation.id, "actor": program.actor, "whole": True, "claims": True}
    return await conversation.client.call("list.undo", {**params, **selection})


async def _ask(program: Program, question: str, preview: Any) -> bool:
    return bool(await program.push_screen_wait(Confirm(question, [safe(line) for line in preview["undone"]])))


def _describe(word: str, lines: list[str], key: str) -> str:
    more = f" and {len(lines) - _MAX_LINES} more" if len(lines) > _MAX_LINES else ""
    return f"{word}: {', '.join(lines[:_MAX_LINES])}{more} ({key}: {'redo' if word == 'Undone' else 'undo'})"
