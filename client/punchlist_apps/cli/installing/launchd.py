"""The daemon under macOS's launchd: an agent of the user, started at login and again after a crash."""

import os
import plistlib
import subprocess
import sys
from typing import NamedTuple

LABEL = "io.punchlist.punchlistd"
"""The agent's name, also that of its file."""

_TIMEOUT_S = 90


class Outcome(NamedTuple):
    """What launchctl did: whether it could, and what it wrote."""

    succeeded: bool
    text: str


def agent_path() -> str:
    return os.path.expanduser(f"~/Library/LaunchAgents/{LABEL}.plist")


def build_agent(socket: str, data_dir: str) -> bytes:
    """The file's content (launchd.plist(5)).

    A daemon that was asked to stop stays stopped; one that failed for a reason that stays is tried again every minute.

    Args:
        socket: Where the daemon listens.
        data_dir: Its data directory; its messages go to `daemon.log` there.
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
    return _launchctl("bootstrap", _user_domain(), agent_path())


def unload() -> Outcome:
    return _launchctl("bootout", f"{_user_domain()}/{LABEL}")


def query_status() -> Outcome:
    return _launchctl("print", f"{_user_domain()}/{LABEL}")


def _user_domain() -> str:
    return f"gui/{os.getuid()}"


def _launchctl(*words: str) -> Outcome:
    try:
        done = subprocess.run(
            ["launchctl", *words], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, cwd="/"
        )
    except FileNotFoundError:
        return Outcome(False, "there is no launchctl on this machine")
    except subprocess.TimeoutExpired:
        return Outcome(False, f"launchctl did not answer within {_TIMEOUT_S} s")
    return Outcome(done.returncode == 0, (done.stdout or done.stderr).strip() or f"exit code {done.returncode}")
