"""The exit codes of `punch`: what a script may rely on. docs/operating.md has the same table, with more words."""

OK = 0
REFUSED = 1
USAGE = 2
NO_DAEMON = 69
FAULT = 70
LOST_RACE = 75
CONFIGURATION = 78
TIME_UP = 124
"""As timeout(1)."""
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    REFUSED: "refused",
    USAGE: "usage",
    NO_DAEMON: "no daemon that answers",
    FAULT: "internal error",
    74: "a file could not be read or written",
    LOST_RACE: "another daemon runs",
    CONFIGURATION: "configuration, or an unusable log",
    TIME_UP: "wait: the time is up",
    INTERRUPTED: "interrupted",
}
"""74 comes from the daemon's program alone, which `punch daemon verify` and `punch daemon restore` run."""
