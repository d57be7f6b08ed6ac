"""The scenes of the demo. Each one ends by checking what it has shown."""

from typing import Any

from punchlist_demo.cast import CLAUDE, CODEX, PERSON, Cast

NOTE = "on Windows 11 too: a customer waits for it"
_PLAN = (
    {"title": "Fix the login", "ref": "fix"},
    {"title": "Write the changelog", "ref": "log"},
    {"title": "Test the installer", "ref": "test", "after": ["fix"]},
    {"title": "Tag v2.0", "ref": "tag", "after": ["log", "test"]},
    {"title": "Announce v2.0", "after": ["tag"]},
)
_LANGUAGES = ("French", "German", "Spanish", "Italian", "Polish", "Dutch")
_KILL_IN = (2, 4)
"""The rounds of calls in which the daemon is killed."""


def plan(cast: Cast) -> None:
    """Let one agent make a plan and take the first task."""
    cast.stage.heading("1. claude-code plans five tasks and takes the first")
    cast.claude.call("plan", tasks=list(_PLAN))
    cast.claude.call("next")
    cast.stage.check(f"#1 belongs to {CLAUDE}", cast.owner("1") == CLAUDE)


def refuse(cast: Cast) -> None:
    """Let another agent take the next task, and try to finish the first agent's."""
    cast.stage.heading("2. codex gets another task, and can't finish claude-code's")
    cast.codex.call("next")
    answer = cast.codex.call("update", may_refuse=True, id="1", status="completed")
    cast.show_list()
    is_kept = cast.owner("1") == CLAUDE and cast.owner("2") == CODEX
    cast.stage.check("the update was refused: each agent has its own task", answer.refused and is_kept)


def note(cast: Cast) -> None:
    """Let a person add a note to a task that an agent takes later."""
    cast.stage.heading("3. A person adds a note to #3; the agent that takes #3 reads it")
    cast.punch("note", "3", NOTE, last=2)
    finished = cast.claude.call("next", result="in auth.py")
    is_read = f"Note by {PERSON}: {NOTE}" in finished.text
    cast.stage.check(f"{CLAUDE} took #3, and read {PERSON}'s note on it", is_read and cast.owner("3") == CLAUDE)


def undo(cast: Cast) -> None:
    """Let the person undo one agent's changes, and keep the change that the other agent made in between."""
    cast.stage.heading("4. codex spoils the plan; the person undoes only codex's changes")
    cast.codex.call("update", id="4", title="Tag v3.0")
    cast.claude.call("plan", tasks=[{"title": "Close the milestone", "after": ["4"]}])
    cast.codex.call("update", id="5", status="deleted")
    harm = cast.tasks()
    cast.punch("log", "-n", "3")
    cast.punch("undo", "--of", CODEX, "-n", "2", "--preview")
    is_preview = cast.tasks().version == harm.version
    cast.punch("undo", "--of", CODEX, "-n", "2", "--yes")
    cast.show_list()
    titles = {task.id: task.title for task in cast.tasks()}
    is_undone = (titles.get("4"), titles.get("5")) == ("Tag v2.0", "Announce v2.0")
    is_harm = [task.title for task in harm][3:] == ["Tag v3.0", "Close the milestone"]
    is_kept = titles.get("6") == "Close the milestone" and cast.owner("2") == CODEX
    cast.stage.check("#4 and #5 are back", is_harm and is_preview and is_undone)
    cast.stage.check("claude-code's #6 stays, and codex still has #2", is_kept)


def kill(cast: Cast) -> None:
    """Kill the daemon while both agents wait for replies."""
    cast.stage.heading("5. kill -9, twice, while both agents work")
    cast.codex.call("plan", tasks=[{"title": f"Translate it into {language}"} for language in _LANGUAGES])
    agents, rounds, max_rounds = (cast.claude, cast.codex), 0, len(cast.tasks())
    with cast.stage.redrawn():
        cast.show_list()
        while any(agent.has_task for agent in agents) and rounds < max_rounds:
            rounds += 1
            pid = cast.client.status().pid
            for agent in agents:
                agent.send("next", **({"result": "done"} if agent.has_task else {}))
            if rounds in _KILL_IN:
                cast.kill_daemon(pid)
            for agent in agents:
                text = " ".join(agent.receive().text.splitlines()[:2])
                cast.stage.output(f"{cast.stage.actor(agent.name)}: {text}")
            cast.show_list()
    is_done = len(cast.kills) == len(_KILL_IN) and not cast.tasks().remaining
    cast.stage.check("no call failed, and the work is done", is_done)


def prove(cast: Cast) -> None:
    """Compare the log with the acknowledged changes and with the events that another process received."""
    events = cast.events()
    versions = [event["version"] for event in events]
    seqs = {event["seq"] for event in events}
    acknowledged = {agent.name: agent.acknowledged for agent in (cast.claude, cast.codex)}
    kills = "".join(f"kill -9 {pid}, " for pid in cast.kills)
    count = sum(map(len, acknowledged.values()))
    is_followed = cast.followed(len(events)) == list(range(1, len(events) + 1))
    cast.stage.heading(f"The proof: {kills}{count} acknowledged changes, {len(events)} events")
    check = cast.stage.check
    check("every acknowledged change is in the log", all(seqs.issuperset(own) for own in acknowledged.values()))
    check("no change was made twice", all(_ends(events, name) == own for name, own in acknowledged.items()))
    check("the versions have no hole", versions == list(range(1, len(events) + 1)))
    check("another process, punch log --follow, got each event once and in order", is_followed)


def _ends(events: list[dict[str, Any]], actor: str) -> list[int]:
    """Return the position of the last event of each call that an actor made."""
    last = {event.get("call", event["version"]): event["seq"] for event in events if event["actor"] == actor}
    return list(last.values())


SCENES = (plan, refuse, note, undo, kill, prove)
