"""`punch init`: write the project file that names this project's list, allow one that came with a clone, commit it."""

import os
import secrets
import subprocess

from punchlist.base.text import safe
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.parsing.arguments import Argument, Usage, flag
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_schemas import directory, project_file, repository
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.repository import Repository
from punchlist_schemas.system.atomic import atomic_write

COMMANDS = {
    "init": Usage(
        (
            Argument(
                ("name",), "the list (default: the repository's own, or a new one)", {"metavar": "NAME", "nargs": "?"}
            ),
            flag("--commit", text="commit the file, and nothing else, to the git repository"),
            flag("--trust", text="accept the list that a cloned project file names"),
        ),
        ("punch init", "punch init --commit", "punch init website", "punch init --trust"),
    ),
}

_GIT_S = 60


def run_init(context: Context) -> int:
    """Write `.punchlist.toml`; one that is there already is never changed.

    With a name it goes into the working directory, also below the top of a repository, whose own list goes to its top.
    """
    args = context.args
    if args.trust:
        return _trust(context)
    wanted = args.name or args.conversation
    place = os.path.realpath(os.getcwd())
    within = _repository(place)
    if within is not None and wanted is None and not project_file.exists(os.path.join(place, project_file.NAME)):
        place = within.root
    path = os.path.join(place, project_file.NAME)
    if args.commit and within is None:
        raise StateError("--commit needs a git repository, and this directory is in none")
    name = wanted or (within.conversation if within else repository.build_list_id(place, secrets.token_hex(3)))
    if not project_file.is_conversation_id(name):
        raise UsageError(f"{name!r} can't be a conversation's id: 1 to 128 of A-Z a-z 0-9 . _ : -")
    lines: list[str] = []
    if project_file.exists(path):
        name, asked = project_file.read(path), name
        if wanted not in (None, name):
            show_error("exists", f"{path} names {name}, not {asked}", "edit it, or remove it first")
            return REFUSED
        lines.append(f"{path} names {name} already")
    else:
        # First the permission: a project file that has none is rejected by every later command.
        directory.describe_project(place, name).allow(context.target.data_dir)
        atomic_write(path, project_file.format_text(name).encode(), mode=None, replace=False)
        stored.record(f"the file {path}")
        lines.append(f"wrote {path}: this project's list is {name}")
        lines += _left_behind(context, within, name)
    if args.commit:
        if (failed := _commit(place)) is not None:
            show_error("git", failed, f"{path} is written and not committed")
            return REFUSED
        stored.record("the commit")
        lines.append("committed: clones and worktrees use the same name")
    elif within is not None and not _is_committed(place):
        lines.append("commit it if clones and other branches should use the same name: punch init --commit")
    return context.answer({"file": path, "conversation": name, "committed": args.commit}, map(safe, lines))


def _trust(context: Context) -> int:
    """Let the project file that is in force here name its list, whoever wrote it."""
    if context.args.name or context.args.commit:
        raise UsageError("--trust goes alone: it is about the file that is there")
    meant = directory.find_list()
    if meant is None or meant.file is None:
        raise StateError("there is no project file here; punch init writes one")
    meant.allow(context.target.data_dir)
    stored.record(f"the trust in {meant.file}")
    line = f"{meant.file} may name the list {meant.conversation} from now on"
    return context.answer({"file": meant.file, "conversation": meant.conversation}, [safe(line)])


def _repository(place: str) -> Repository | None:
    """The repository around; one that can't be used is no reason not to write a project file."""
    try:
        return repository.find_repository(place)
    except DirectoryError:
        return None


def _left_behind(context: Context, within: Repository | None, name: str) -> list[str]:
    """Where the tasks are that were in the repository's own list, if another one was chosen."""
    own = within and within.conversation
    if own is None or own == name:
        return []
    try:
        with Caller(context.target.with_autostart(False), **context.options) as caller:
            caller.open()  # Without a daemon this fails at once, and a call would be repeated for 30 s.
            there = caller.call("conversation.get", {"conversation": own})["conversation"]["version"]
    except PunchlistError:  # nobody to ask
        return []
    return [f"the tasks so far stay in {own}: punch list -c {own}"] if there else []


def _is_committed(place: str) -> bool:
    """Whether the last commit has the project file as it is."""
    path = os.path.join(place, project_file.NAME)
    try:
        known = _git(place, "ls-files", "--error-unmatch", "--", path) is None
        return known and _git(place, "diff", "--quiet", "HEAD", "--", path) is None
    except (OSError, subprocess.TimeoutExpired):
        return False


def _commit(place: str) -> str | None:
    """Commit the project file and nothing else; why it can't be done, or None."""
    path = os.path.join(place, project_file.NAME)
    try:
        if (failed := _git(place, "add", "--", path)) is not None:
            return failed
        if _git(place, "diff", "--cached", "--quiet", "--", path) is None:
            return None  # as it is in the last commit
        failed = _git(place, "commit", "--quiet", "-m", "Name the task list of this project", "--only", "--", path)
        if failed is not None:
            _git(place, "reset", "--quiet", "--", path)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"git can't be run: {error}"
    return failed


def _git(place: str, *words: str) -> str | None:
    """Run git there; what it said if it failed, else None."""
    done = subprocess.run(
        ["git", "-C", place, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=_GIT_S, check=False
    )
    if done.returncode == 0:
        return None
    said = [line for line in (done.stderr or done.stdout).decode("utf-8", "replace").splitlines() if line.strip()]
    worst = [line for line in said if line.startswith(("fatal:", "error:"))]
    plain = [line for line in said if not line.startswith("hint:")]
    return " ".join(worst or plain) or f"git {words[0]} ended with code {done.returncode}"
