"""Reads the tasks that the trailers of a git commit name (git-interpret-trailers(1))."""

import re
from typing import NamedTuple

from punchlist_apps.cli.calling.git import run_git
from punchlist_apps.cli.printing.failure import StateError

TRAILER = "Closes-Task"

_FORMAT = f"--format=%h%x00%s%x00%an%x00%ae%x00%at%x00%(trailers:key={TRAILER},valueonly,unfold)"
_MAX_SUBJECT = 500


class Commit(NamedTuple):
    """A commit.

    Attributes:
        summary: What a task's result contains.
        origin: Author and time of writing, which amend, rebase and cherry-pick keep.
        tasks: The words of the trailers, such as `#3`.
    """

    summary: str
    origin: str
    tasks: list[str]

    def build_key(self, task: str, *, is_copy_new: bool = False) -> str:
        """Return the idempotency key for the completion of a task, which is the same in all copies of the commit.

        Args:
            is_copy_new: Whether a copy completes the task again, so that its key is different.
        """
        from hashlib import sha256

        copies = "\0".join((self.origin, task, *([self.summary] if is_copy_new else ())))
        return f"commit-{sha256(copies.encode()).hexdigest()[:40]}"


def read_commit(revision: str) -> Commit:
    """Return a commit of the working directory's repository.

    Raises:
        StateError: git doesn't find the commit, or the commit has no trailer.
    """
    # Of a range, git prints two commits or none. In the other order, -2 would cancel --no-walk.
    options = ("-c", "log.showSignature=false", "log", "-2", "--no-walk", "--encoding=UTF-8", _FORMAT)
    process = run_git(".", *options, "--end-of-options", revision, "--")
    if process.returncode:
        problem = process.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise StateError(f"no commit {revision}: {problem}")
    fields = process.stdout.decode("utf-8", "replace").split("\0")
    if len(fields) != _FORMAT.count("%x00") + 1:
        raise StateError(f"{revision} is not one commit; name it, such as HEAD")
    short, subject, name, email, written, trailers = fields
    tasks = re.findall(r"[^\s,]+", trailers)
    if not tasks:
        raise StateError(f"commit {short} has no trailer such as {TRAILER}: #3")
    return Commit(f"commit {short}: {subject[:_MAX_SUBJECT]}", f"{name}\0{email}\0{written}", tasks)
