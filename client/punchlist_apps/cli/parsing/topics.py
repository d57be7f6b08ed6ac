"""The pages of `punch help TOPIC`, for subjects that span several commands."""

from punchlist_apps.cli.printing import exit_codes

TOPICS = {
    "lists": """The list of a command, by the first rule that applies:

  1. -c NAME
  2. PUNCHLIST_CONVERSATION
  3. the project file .punchlist.toml of this directory or one above it (punch init writes it)
  4. the git repository: its list is shared by all of its worktrees
  5. default

  punch list all               shows all lists
  punch list set title=NAME    names this one
  punch list rm NAME           erases one, with its history; a shared one on every machine
""",
    "undo": """An undo erases nothing. It adds new events, so you can undo it as well.

  punch undo              undoes your newest call
  punch undo 12           undoes the call that made version 12 (punch log shows versions)
  punch undo -n 3         undoes your 3 newest calls; asks first on a terminal
  punch undo --of NAME    undoes the newest call of another actor, or -n of them
  punch undo --preview    shows the changes without making them; also for redo and revert
  punch redo              undoes your newest undo
  punch revert --at 12    restores the list as it was at version 12
  punch list --at 12      shows the list as it was

Your calls are those under your name in punch log: from here, punch ui, the page and your editor, and those of your
chats, which the log records as chat/ID.
With --actor or PUNCHLIST_ACTOR they are only those of that name.
An undo or redo is rejected if a newer call depends on it; the error names that call and its actor.
Restored tasks obey the rules: a task whose blocker was reopened since is pending, and the output says why.
--force undoes as much as possible and leaves the rest.
""",
    "times": """Formats of times:

  --due, --after-date     2026-12-24, "24 dec", friday, "next week", tomorrow, 3d, eow, eom, "end of month"
                          with a time of day: "2026-12-24 18:00", "tomorrow 5pm", tonight, "in 2 hours"
  --since, --at           10m, "10 min ago", yesterday, 2026-12-24; --at also takes a version: 12
  --timeout, --lease      90s, 10m, 2h; a bare number is seconds

Without a time of day it is a day: the same day in every time zone, until it ends where you are.
punch list --due today shows what is due by the end of today, including overdue tasks.
A weekday is the next one after today, "next friday" is the one of next week (from Monday), eow is Sunday.

Units: ms, s, m or min, h, d, w, mo, y, and their English words.
""",
    "people": """Actors and owners:

  actor    who made a call, in the log: --actor, PUNCHLIST_ACTOR, else the user who is logged in
  owner    who works on a task: --owner, PUNCHLIST_OWNER, else the actor

  punch start 3           the task is yours now, and in progress
  punch done 3            completes it
  punch next --take       takes the next ready task; --done or --result complete yours first
  punch queue release 3   releases it
""",
    "scripts": """For scripts:

  --json                  prints JSON; errors are JSON on standard error: kind, message, advice
  NO_COLOR=1              no colors; pipes never have them
  punch list --line       one line for a shell prompt, without starting a daemon
  punch watch | ...       each event as a line of JSON

exit codes:
"""
    + exit_codes.TABLE
    + "\n",
}
"""Name of a topic → its page."""


def find_topic(name: str) -> str | None:
    """Return the page of a topic, or the list of topics for `topics`; None for an unknown topic."""
    if name == "topics":
        return "topics: " + ", ".join(TOPICS) + "\n  punch help TOPIC shows one\n"
    return TOPICS.get(name)
