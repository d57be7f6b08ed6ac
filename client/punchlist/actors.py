"""Who is who by name: an agent's sub-agents are `AGENT/NAME`, and a person's chats are `chat/ID`."""


def chat_actor(thread: str) -> str:
    """The actor of what a chat changes, by the conversation that holds its thread."""
    return f"chat/{thread.removeprefix('chat-')[:8]}"


def is_agents(actor: str, agent: str) -> bool:
    """Whether an actor is the agent or one of its sub-agents; without a name an agent has nobody."""
    return bool(agent) and (actor == agent or actor.startswith(f"{agent}/"))


def is_persons(actor: str, person: str) -> bool:
    """Whether an actor is the person of this machine, at the command line or in a chat; without a name nobody is."""
    return bool(person) and (actor == person or actor.startswith("chat/"))
