"""Naming rules for actors: an agent's sub-agents are `AGENT/NAME`, a person's chats are `chat/ID`."""

from collections.abc import Iterable, Mapping
from typing import Any

THREADS = 200
"""Maximum number of chats to search for those about a list, latest first."""

_UUID_CHARS = 36
_UUID_PREFIX_CHARS = 8
_MAX_NAME_CHARS = 123
"""Longest name after `chat/` that fits an actor."""


def chat_actor(thread: str) -> str:
    """Return the actor of a chat's changes, given the conversation of the chat's thread."""
    name = thread.partition("chat-")[2] or thread
    # The prefix of a random id is unique enough. Ids chosen by clients may share a prefix.
    is_uuid = len(name) == _UUID_CHARS and name[_UUID_PREFIX_CHARS] == "-"
    return f"chat/{name[: _UUID_PREFIX_CHARS if is_uuid else _MAX_NAME_CHARS]}"


def is_chat(actor: str) -> bool:
    return actor.startswith("chat/")


def belongs_to_agent(actor: str, agent: str) -> bool:
    """Return whether an actor is the agent or one of its sub-agents; False if `agent` is empty."""
    return bool(agent) and (actor == agent or actor.startswith(f"{agent}/"))


def belongs_to_person(actor: str, person: str) -> bool:
    """Return whether an actor is this machine's user or one of the user's chats; False if `person` is empty."""
    return bool(person) and (actor == person or is_chat(actor))


def chats_about(list_id: str, chats: "Iterable[Mapping[str, Any]]") -> list[str]:
    """Return the actors of the local user's chats about a list. Undo counts their changes as the user's own.

    Args:
        list_id: The list.
        chats: Chats in the JSON form of `conversation.list`. Chats of other users are skipped.
    """
    own = (chat for chat in chats if chat.get("metadata", {}).get("list") == list_id and not chat.get("user"))
    return [chat_actor(chat["conversation"]) for chat in own]
