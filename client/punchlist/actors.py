"""Who is who by name: an agent's sub-agents are `AGENT/NAME`."""


def is_agents(actor: str, agent: str) -> bool:
    """Whether an actor is the agent or one of its sub-agents; without a name an agent has nobody."""
    return bool(agent) and (actor == agent or actor.startswith(f"{agent}/"))
