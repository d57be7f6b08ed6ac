"""Creates Git repositories for tests with the git program, independent of the machine's Git configuration."""

import os
import subprocess
from pathlib import Path

_IDENTITY = {
    **{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"},
    **{"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.org"},
    **{"GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.org"},
}


def git(directory: Path, *words: str) -> str:
    """Run git in a directory and return its output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | _IDENTITY
    words = ("git", "-C", str(directory), "-c", "protocol.file.allow=always", *words)
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=30, check=True).stdout


def repository(directory: Path) -> Path:
    """Create a repository with one commit."""
    directory.mkdir(parents=True, exist_ok=True)
    git(directory, "init", "--quiet")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", "Begin")
    return directory


def worktree(of: Path, directory: Path) -> Path:
    """Create a linked worktree of a repository, on a new branch."""
    git(of, "worktree", "add", "--quiet", "-b", directory.name, str(directory))
    return directory
