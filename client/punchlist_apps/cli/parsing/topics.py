"""The pages of `punch help TOPIC`, for subjects that concern several commands."""

from punchlist_apps.cli.printing import exit_codes

TOPICS = {
    "lists": """Which list is meant, the first that applies:

  1. -c NAME
  2. PUNCHLIST_CONVERSATION
  3. the project file .punchlist.toml of this directory or one above it (punch init writes it)
  4. the git repository: its list is shared by all of its worktrees
  5. default

  punch list all               shows all lists
  punch list set title=NAME    names this one
  punch list rm NAME           erases one, with its history; a shared one on every machine
""",
    "undo": """Nothing is erased: an undo adds new events, so it can be taken back as well.

  punch undo              takes back your own newest call
  punch undo 12           takes back the call that made version 12 (punch log shows versions)
  punch undo -n 3         takes back your 3 newest calls; asks first on a terminal
  punch undo --of NAME    takes back what another actor did: the newest call, or -n of them
  punch undo --preview    shows what would happen; goes with all of these, and with redo and revert
  punch redo              takes back your newest undo
  punch revert --at 12    makes the list what it was at version 12
  punch list --at 12      shows the list as it was

Your own calls are those under your name in punch log, from here, punch ui, the page and your editor, and those of
your chats, which stand there as chat/ID.
With --actor or PUNCHLIST_ACTOR they are that name's alone.
An undo or redo is refused if a newer call rests on what it would take back; the refusal names that call and its actor.
What comes back obeys the rules: a task whose blocker was reopened since is pending, and the answer says why.
--force takes back what still stands and leaves the rest.
""",
    "times": """Where a time is asked for:

  --due, --after-date     2026-12-24, "24 dec", friday, "next week", tomorrow, 3d, eow, eom, "end of month"
                          with a time of day: "2026-12-24 18:00", "tomorrow 5pm", tonight, "in 2 hours"
  --since, --at           10m, "10 min ago", yesterday, 2026-12-24; --at also takes a version: 12
  --timeout, --lease      90s, 10m, 2h; a bare number is seconds

Without a time of day it is a day: it stays that day in every time zone, and it is over when it ends where you are.
punch list --due today shows what is due by the end of today, including what is late.
A weekday is the next one after today, "next friday" is that of the week that begins on Monday, eow is Sunday.

Units: ms, s, m or min, h, d, w, mo, y, and their English words.
""",
    "people": """Who does something, and who has a task:

  actor    who made a call, as the log records it: --actor, PUNCHLIST_ACTOR, else the user who is logged in
  owner    who works on a task: --owner, PUNCHLIST_OWNER, else the actor

  punch start 3           the task is yours now, and in progress
  punch done 3            completes it
  punch next --take       takes the next ready task; --done or --result complete yours first
  punch queue release 3   gives it back
""",
    "scripts": """In a script:

  --json                  prints JSON; errors are JSON on standard error: kind, message, advice
  NO_COLOR=1              no colours; there are none in a pipe anyway
  punch list --line       one line for a shell prompt, without starting a daemon
  punch watch | ...       each event as a line of JSON

exit codes:
"""
    + exit_codes.TABLE
    + "\n",
}
"""Name of the topic → its page."""


def find_topic(name: str) -> str | None:
    """Return the page of a topic, or the list of topics for `topics`; None for an unknown topic."""
    if name == "topics":
        return "topics: " + ", ".join(TOPICS) + "\n  punch help TOPIC shows one\n"
    return TOPICS.get(name)
