"""The daemon as a launchd agent on macOS, started at login and after a crash."""

import os
import plistlib
import subprocess
import sys
from typing import NamedTuple

LABEL = "io.punchlist.punchlistd"
"""Name of the agent and base name of its file."""

_TIMEOUT_S = 90


class Outcome(NamedTuple):
    """Whether launchctl succeeded, and launchctl's output."""

    succeeded: bool
    text: str


def agent_path() -> str:
    return os.path.expanduser(f"~/Library/LaunchAgents/{LABEL}.plist")


def build_agent(socket: str, data_dir: str) -> bytes:
    """Return the content of the agent's file (see launchd.plist(5)).

    launchd doesn't restart a daemon that was stopped. It restarts a daemon that fails, at most once a minute.

    Args:
        socket: The daemon's socket.
        data_dir: The data directory, where `daemon.log` receives the messages.
    """
    words = [sys.executable, "-P", "-m", "punchlistd", "--socket", socket, "--data-dir", data_dir]
    return plistlib.dumps(
        {
            "Label": LABEL,
            "ProgramArguments": words,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": 60,
            "ProcessType": "Interactive",
            "Umask": 0o077,
            "StandardErrorPath": os.path.join(data_dir, "daemon.log"),
        }
    )


def load() -> Outcome:
    return _launchctl("bootstrap", _build_domain(), agent_path())


def unload() -> Outcome:
    return _launchctl("bootout", f"{_build_domain()}/{LABEL}")


def query_status() -> Outcome:
    return _launchctl("print", f"{_build_domain()}/{LABEL}")


def _build_domain() -> str:
    return f"gui/{os.getuid()}"


def _launchctl(*words: str) -> Outcome:
    try:
        process = subprocess.run(
            ["launchctl", *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd="/"
        )
    except FileNotFoundError:
        return Outcome(False, "launchctl not found")
    except subprocess.TimeoutExpired:
        return Outcome(False, f"launchctl did not respond within {_TIMEOUT_S} s")
    text = (process.stdout or process.stderr).strip() or f"exit code {process.returncode}"
    return Outcome(process.returncode == 0, text)
