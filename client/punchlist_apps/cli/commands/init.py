"""`punch init`: write, trust or commit the project file that names this project's list."""

import os
import secrets

from punchlist.base.text import safe
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.git import run_git
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
            flag("--trust", text="allow the list that a cloned project file names"),
            flag("--git", text="install a git hook: commits complete the tasks of their trailer Closes-Task: #3"),
            flag("--remove", text="with --git: remove the hook"),
        ),
        ("punch init", "punch init --commit", "punch init website", "punch init --trust", "punch init --git"),
    ),
}

_GIT_S = 60


def run_init(context: Context) -> int:
    """Write `.punchlist.toml`. An existing file is never changed.

    A file that names a list is written to the working directory; a file for the repository's own list is written to the
    repository's root.
    """
    args = context.args
    if args.git or args.remove:
        return _change_hook(context)
    if args.trust:
        return _trust(context)
    requested = args.name or args.conversation
    folder = os.path.realpath(os.getcwd())
    repo = _find_repository(folder)
    if repo is not None and requested is None and not project_file.exists(os.path.join(folder, project_file.NAME)):
        folder = repo.root
    path = os.path.join(folder, project_file.NAME)
    if args.commit and repo is None:
        raise StateError("--commit needs a git repository, and this directory is not in one; run git init first")
    name = requested or (repo.conversation if repo else repository.build_list_id(folder, secrets.token_hex(3)))
    if not project_file.is_conversation_id(name):
        raise UsageError(f"invalid list name {name!r}; use 1 to 128 of A-Z a-z 0-9 . _ : -")
    lines: list[str] = []
    if project_file.exists(path):
        name = project_file.read(path)
        if requested not in (None, name):
            show_error("exists", f"{path} names {name}, not {requested}", "edit the file, or remove it first")
            return REFUSED
        lines.append(f"{path} already names {name}")
    else:
        # Allow the file first, because later commands reject a project file that isn't allowed.
        directory.describe_project(folder, name).allow(context.target.data_dir)
        atomic_write(path, project_file.format_text(name).encode(), mode=None, replace=False)
        stored.record(f"the file {path}")
        lines.append(f"wrote {path}: this project's list is {name}")
        lines += _find_previous_tasks(context, repo, name)
    if args.commit:
        if (failure := _commit(folder)) is not None:
            show_error("git", failure, f"{path} was written but not committed")
            return REFUSED
        stored.record("the commit")
        lines.append("committed: clones and worktrees use the same list")
    elif repo is not None and not _is_committed(folder):
        lines.append("to use the same list in clones and other branches: punch init --commit")
    return context.answer({"file": path, "conversation": name, "committed": args.commit}, map(safe, lines))


def _trust(context: Context) -> int:
    """Allow the list that this directory's project file names."""
    if context.args.name or context.args.commit:
        raise UsageError("--trust takes no name and no --commit; leave them out")
    meant = directory.find_list()
    if meant is None or meant.file is None:
        raise StateError("no project file here; to write one: punch init")
    meant.allow(context.target.data_dir)
    stored.record(f"the trust in {meant.file}")
    line = f"{meant.file} is now allowed to name the list {meant.conversation}"
    return context.answer({"file": meant.file, "conversation": meant.conversation}, [safe(line)])


def _change_hook(context: Context) -> int:
    """Install or remove the git hook. It belongs to the repository with all its worktrees, and isn't committed."""
    from punchlist_apps.cli.installing import git_hook, shipped

    args = context.args
    if not args.git or args.name or args.commit or args.trust:
        raise UsageError("--git takes only --remove; leave out the other options")
    repo = repository.find_repository(os.path.realpath(os.getcwd()))
    if repo is None:
        raise StateError("--git needs a git repository, and this directory is not in one; run git init first")
    if args.remove:
        path = git_hook.remove(repo)
        lines = [f"removed from {path}" if path else "nothing to remove"]
    else:
        path = git_hook.install(repo, shipped.find_program())
        lines = [f"wrote {path}: a commit completes the tasks it names", "try: git commit --trailer 'Closes-Task: #3'"]
    if path:
        stored.record(f"the hook {path}")
    return context.answer({"file": path, "installed": not args.remove}, map(safe, lines))


def _find_repository(folder: str) -> Repository | None:
    try:
        return repository.find_repository(folder)
    except DirectoryError:
        return None  # an unusable repository doesn't prevent a project file


def _find_previous_tasks(context: Context, repo: Repository | None, name: str) -> list[str]:
    """Return a line about tasks in the repository's own list if the file names another list."""
    own = repo and repo.conversation
    if own is None or own == name:
        return []
    try:
        with Caller(context.target.with_autostart(False), **context.options) as caller:
            caller.open()  # fails immediately without a daemon, whereas a call would retry for 30 s
            version = caller.call("conversation.get", {"conversation": own})["conversation"]["version"]
    except PunchlistError:
        return []
    return [f"earlier tasks stay in {own}: punch list -c {own}"] if version else []


def _is_committed(folder: str) -> bool:
    """Return whether the project file is committed and unchanged since."""
    path = os.path.join(folder, project_file.NAME)
    try:
        is_tracked = _try_git(folder, "ls-files", "--error-unmatch", "--", path) is None
        return is_tracked and _try_git(folder, "diff", "--quiet", "HEAD", "--", path) is None
    except StateError:
        return False


def _commit(folder: str) -> str | None:
    """Commit the project file and nothing else. Return git's error, or None."""
    path = os.path.join(folder, project_file.NAME)
    try:
        if (failure := _try_git(folder, "add", "--", path)) is not None:
            return failure
        if _try_git(folder, "diff", "--cached", "--quiet", "--", path) is None:
            return None  # already committed
        failure = _try_git(
            folder, "commit", "--quiet", "-m", "Name the task list of this project", "--only", "--", path
        )
        if failure is not None:
            _try_git(folder, "reset", "--quiet", "--", path)
    except StateError as error:
        return str(error)
    return failure


def _try_git(folder: str, *words: str) -> str | None:
    """Run git in a directory. Return its error messages, or None."""
    process = run_git(folder, *words, timeout_s=_GIT_S)
    if process.returncode == 0:
        return None
    output = (process.stderr or process.stdout).decode("utf-8", "replace")
    lines = [line for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:"))]
    others = [line for line in lines if not line.startswith("hint:")]
    return " ".join(errors or others) or f"git {words[0]} exited with code {process.returncode}"
