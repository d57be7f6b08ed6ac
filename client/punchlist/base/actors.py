"""Who is who by name: an agent's sub-agents are `AGENT/NAME`, and a person's chats are `chat/ID`."""

from collections.abc import Iterable, Mapping
from typing import Any

THREADS = 200
"""Maximum number of chats that are searched for those about a list, latest first."""

_UUID, _DRAWN, _MOST = 36, 8, 123
"""Characters of an id that was drawn at random, of its beginning that names it, and of a name that fits an actor."""


def chat_actor(thread: str) -> str:
    """The actor of what a chat changes, by the conversation that holds its thread.

    Of an id that was drawn at random the beginning will do; one that a client chose may begin as others do.
    """
    name = thread.partition("chat-")[2] or thread
    is_drawn = len(name) == _UUID and name[_DRAWN] == "-"
    return f"chat/{name[: _DRAWN if is_drawn else _MOST]}"


def is_chat(actor: str) -> bool:
    return actor.startswith("chat/")


def belongs_to_agent(actor: str, agent: str) -> bool:
    """Whether an actor is the agent or one of its sub-agents; without a name an agent has nobody."""
    return bool(agent) and (actor == agent or actor.startswith(f"{agent}/"))


def belongs_to_person(actor: str, person: str) -> bool:
    """Whether an actor is the person of this machine, at the command line or in a chat; without a name nobody is."""
    return bool(person) and (actor == person or is_chat(actor))


def chats_about(list_id: str, chats: "Iterable[Mapping[str, Any]]") -> list[str]:
    """The actors of a person's chats about a list, of chats as `conversation.list` gives them.

    What these change, the person changes, on whatever face: undo counts it as theirs. Chats of other users are not.
    """
    own = (one for one in chats if one.get("metadata", {}).get("list") == list_id and not one.get("user"))
    return [chat_actor(one["conversation"]) for one in own]
