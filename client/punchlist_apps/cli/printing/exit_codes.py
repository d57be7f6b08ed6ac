"""The exit codes of `punch`, a stable interface for scripts. docs/operating.md explains them."""

OK = 0
REFUSED = 1
USAGE = 2
NO_DAEMON = 69
FAULT = 70
LOST_RACE = 75
CONFIGURATION = 78
TIME_UP = 124
"""As in timeout(1)."""
INTERRUPTED = 130

MEANINGS = {
    OK: "done",
    REFUSED: "refused",
    USAGE: "usage",
    NO_DAEMON: "no daemon responds",
    FAULT: "internal error",
    74: "a file could not be read or written",
    LOST_RACE: "another daemon runs",
    CONFIGURATION: "configuration, or an unusable log",
    TIME_UP: "wait: timed out",
    INTERRUPTED: "interrupted",
}
"""Only the daemon's program returns 74. `punch daemon verify` and `punch daemon restore` run that program."""

TABLE = "\n".join(f"  {code:<5}{meaning}" for code, meaning in MEANINGS.items())
"""The meanings, as lines of help text."""
