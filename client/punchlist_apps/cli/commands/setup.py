"""`punch setup HOST`: write, show or take back what a host's configuration has to say, or an editor's plugin."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable

from punchlist.base.text import safe, safe_block
from punchlist.taskfiles.config import Config, ConfigError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing import vscode_extension
from punchlist_apps.cli.installing.editor_plugins import EDITORS, EditorPlugin
from punchlist_apps.cli.parsing.arguments import Usage, choice, flag
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common import autostart
from punchlist_apps.hosts.catalog import HOSTS, Host, Place, get_host
from punchlist_apps.hosts.check import ServerError, list_tools
from punchlist_apps.hosts.configure import Change, Configurator, SetupError
from punchlist_apps.hosts.host_command import HostCommand
from punchlist_schemas.project_file import is_conversation_id

_HOSTS = tuple(host.name for host in HOSTS)


def _meant(word: str) -> str:
    """The host that a word means: `claude` is how Claude Code is started."""
    return {"claude": "claude-code"}.get(word, word)


COMMANDS = {
    "setup": Usage(
        (
            choice(
                "host",
                text="the host, or the editor whose plugin to install",
                choices=(*_HOSTS, *EDITORS, vscode_extension.NAME),
                type=_meant,
            ),
            choice("--scope", text="for this user, or for this directory", choices=("user", "project"), default="user"),
            flag("--allow", text="claude-code: let the model call punchlist's tools without asking"),
            flag("--tasks", text="claude-code: also copy its own task lists into punchlist"),
            flag("--print", "--dry-run", text="show the difference, and change nothing"),
            flag("--remove", text="remove what setup added"),
        ),
        (
            "punch setup claude-code",
            "punch setup vscode --scope project",
            "punch setup codex --remove",
            "punch setup neovim",
            "punch setup emacs",
            "punch setup vscode-extension",
        ),
    ),
}


def run_setup(context: Context) -> int:
    """Start the server once, then change all files or none."""
    args = context.args
    if args.host not in _HOSTS:
        plugin = EDITORS.get(args.host)
        return _set_up_editor(context, plugin) if plugin else _set_up_extension(context)
    host = get_host(args.host)
    place = _place(context, host)
    files = Configurator(context.target.data_dir, context.note)
    try:
        if args.print:
            changes = [files.plan(wanted, remove=args.remove) for wanted in host.list_edits(place)]
            return context.answer(_value(host, changes), _shown(host, place, changes, remove=args.remove))
        if not args.remove:
            list_tools([place.punch, *place.arguments], place.env)
        # With --tasks a removal takes back that alone.
        is_whole = not (args.remove and args.tasks)
        changes = files.change(host, place, remove=args.remove) if is_whole else []
        _record(one.path for one in changes if one.is_change)
        tasks = _tasks(context, place)
    except SetupError as error:
        show_error("unreadable_file", str(error), "nothing was changed; correct the file, then try again")
        return REFUSED
    except ConfigError as error:
        show_error("configuration", str(error), "remove it: punch mirror add writes it")
        return CONFIGURATION
    except ServerError as error:
        line = shlex.join([place.punch, *place.arguments])
        advice = error.advice or f"run it to see more: {line}"
        show_error("server", f"the MCP server does not start, so nothing was changed: {error}", advice)
        return REFUSED
    lines = _lines(context, host, changes, files) if is_whole else tasks or ["nothing to remove"]
    return context.answer(_value(host, changes), [*lines, *(tasks if is_whole else [])])


def _record(paths: Iterable[str]) -> None:
    for path in paths:
        stored.record(f"the change to {path}")


def _set_up_editor(context: Context, editor: EditorPlugin) -> int:
    """Install an editor's plugin for this user, or remove it: all of its files or none."""
    args = context.args
    _check_is_for_every_list(context, f"{editor.title}'s plugin")
    directory = editor.directory(os.environ)
    try:
        plan = editor.plan(directory, remove=args.remove)
        changed = [one.path for one in plan if one.before != one.after]
        if not args.print:
            editor.install(directory, plan)
            _record(changed)
    except SetupError as error:
        show_error("unreadable_file", safe(str(error)), "nothing was changed; move that file away, then try again")
        return REFUSED
    value = {"host": editor.name, "files": [one.path for one in plan], "changed": changed}
    if not changed:
        return context.answer(value, [f"{editor.title}: nothing to {'remove' if args.remove else 'change'}"])
    lines = [f"{'-' if args.remove else '+'} {safe(path)}" for path in changed]
    if args.print:
        return context.answer(value, lines)
    again = f"  take it back: punch setup {editor.name} --remove"
    told = [f"{editor.title}: removed"] if args.remove else [f"{editor.title} is set up; {editor.then}", again]
    return context.answer(value, [*lines, "", *told])


def _set_up_extension(context: Context) -> int:
    """Install or remove the extension in VS Code and each installed fork."""
    args = context.args
    _check_is_for_every_list(context, "the extension")
    found = vscode_extension.editors()
    # Removal goes by the extension's name, so it also works in an installation without the package.
    package = None if args.remove else vscode_extension.package()
    if not found:
        looked = ", ".join(vscode_extension.PROGRAMS)
        by_hand = f"'Extensions: Install from VSIX...' and choose {package}" if package else "'Extensions: Uninstall'"
        advice = f"in VS Code run {by_hand}"
        show_error("not_found", f"no VS Code is in PATH (looked for {looked})", advice)
        return REFUSED
    changed: list[str] = []
    lines: list[str] = []
    for editor in found:
        words = shlex.join(editor.words(package))
        try:
            if args.remove and not editor.has_extension():
                lines.append(f"{editor.name}: nothing to remove")
                continue
            if not args.print:
                editor.change(package)
                stored.record(f"the change to {editor.name}")
        except vscode_extension.ExtensionError as error:
            done = f"done before: {', '.join(changed)}" if changed else "nothing was changed"
            show_error("host_command", str(error), f"{done}; run it to see more: {words}")
            return REFUSED
        changed.append(editor.name)
        lines.append(f"{'-' if args.remove else '+'} {safe(words)}")
    if changed and not args.print:
        then = "reload its window, then open Punchlist in the activity bar"
        ends = ", ".join(changed)
        again = f"  take it back: punch setup {vscode_extension.NAME} --remove"
        lines += ["", f"{ends}: removed"] if args.remove else ["", f"{ends}: the extension is installed; {then}", again]
    files = [str(package)] if package else []
    return context.answer({"host": vscode_extension.NAME, "files": files, "changed": changed}, lines)


def _check_is_for_every_list(context: Context, what: str) -> None:
    args = context.args
    if args.scope == "project" or args.allow or args.tasks or args.conversation:
        raise UsageError(f"{what} is for this user and every list: leave the other options out")


def _tasks(context: Context, place: Place) -> list[str]:
    """Have Claude Code's own task lists taken over, or no longer; what that means."""
    args = context.args
    if args.host != "claude-code" or args.scope != "user" or not (args.tasks or args.remove):
        return []
    data_dir = context.target.data_dir
    folder = os.path.join(place.env.get("CLAUDE_CONFIG_DIR") or place.get_user_path(".claude"), "tasks")
    is_new = Config(data_dir).set_inbound(folder, enabled=not args.remove)
    if is_new:
        stored.record(f"the setting for {folder}")
    if args.remove:
        return [f"{safe(folder)} is no longer taken over; the tasks stay"] if is_new else []
    autostart.ensure_running(context.target.socket, data_dir)
    return [f"{safe(folder)} is taken over into the projects' lists, and never written to; the hooks keep that going"]


def _place(context: Context, host: Host) -> Place:
    args = context.args
    name = args.conversation
    if name is not None and not is_conversation_id(name):
        raise UsageError(f"{name!r} can't be a list's name: 1 to 128 of A-Z a-z 0-9 . _ : -")
    if args.scope == "project" and host.project is None:
        raise UsageError(f"{host.title} has no file for a project; leave --scope out")
    if args.allow and host.name != "claude-code":
        raise UsageError("--allow is for claude-code: its settings alone list the tools that need no question")
    if args.tasks and (host.name != "claude-code" or args.scope != "user"):
        raise UsageError("--tasks is for claude-code and --scope user: it keeps its lists in the home directory")
    return Place(args.scope, os.getcwd(), os.environ, _punch(args.scope), name, args.allow)


def _value(host: Host, changes: list[Change]) -> dict[str, object]:
    changed = [one.path for one in changes if one.is_change]
    return {"host": host.name, "files": [one.path for one in changes], "changed": changed}


def _shown(host: Host, place: Place, changes: list[Change], *, remove: bool) -> list[str]:
    changed = [one for one in changes if one.is_change]
    if not changed:
        return [_nothing(host, remove=remove)]
    own = HostCommand(host, place)
    by_own = changes[0].is_change and own.can_change(changes[0].before, remove=remove)
    said = [f"# {changes[0].path} is written by: {own.format(remove=remove)}"] if by_own else []
    return [safe_block(line) for line in [*said, *(line for one in changed for line in one.diff())]]


def _lines(context: Context, host: Host, changes: list[Change], files: Configurator) -> list[str]:
    args = context.args
    changed = [one for one in changes if one.is_change]
    if not changed:
        return [_nothing(host, remove=args.remove)]
    lines = [safe_block(line) for change in changed for line in change.diff()]
    if args.remove:
        return [*lines, "", f"{host.title}: removed"]
    kept = [f"  backup: {safe(files.get_backup_path(one.path))}" for one in changed if one.original is not None]
    again = f"punch setup {host.name} --scope {args.scope} --remove"
    return [*lines, "", f"{host.title} is set up; {host.next_step}", *kept, f"  take it back: {again}"]


def _nothing(host: Host, *, remove: bool) -> str:
    return f"{host.title}: nothing to {'remove' if remove else 'change'}"


def _punch(scope: str) -> str:
    """The command as a host should call it: by its path for this user, by its name in a file that others share."""
    if scope == "project":
        return "punch"
    beside = os.path.join(os.path.dirname(sys.executable), "punch")
    return shutil.which("punch") or (beside if os.path.exists(beside) else "punch")
