"""`punch setup HOST`: write, show or remove punchlist's entries in a host's configuration, or an editor's plugin."""

import os
import shlex
from collections.abc import Iterable

from punchlist.base.text import safe, safe_block
from punchlist.taskfiles.config import Config, ConfigError
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing import vscode_extension
from punchlist_apps.cli.installing.editor_plugins import EDITORS, EditorPlugin
from punchlist_apps.cli.installing.shipped import find_program
from punchlist_apps.cli.parsing.arguments import Usage, choice, flag
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, REFUSED
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_apps.common import autostart
from punchlist_apps.hosts.catalog import HOSTS, Host, Place, get_host
from punchlist_apps.hosts.check import ServerError, list_tools
from punchlist_apps.hosts.configure import Change, Configurator, SetupError
from punchlist_apps.hosts.host_command import HostCommand
from punchlist_apps.hosts.plugins import Plugin, find_plugin
from punchlist_schemas.project_file import is_conversation_id

_HOSTS = tuple(host.name for host in HOSTS)


def _parse_host(word: str) -> str:
    """Also accept `claude`, which is Claude Code's command, as the host's name."""
    return {"claude": "claude-code"}.get(word, word)


COMMANDS = {
    "setup": Usage(
        (
            choice(
                "host",
                text="the host, or the editor whose plugin to install",
                choices=(*_HOSTS, *EDITORS, vscode_extension.NAME),
                type=_parse_host,
            ),
            choice(
                "--scope",
                text="set up for this user or for this directory (default: user)",
                choices=("user", "project"),
                default="user",
            ),
            flag("--allow", text="claude-code: allow punchlist's tools without asking"),
            flag("--tasks", text="claude-code: also copy its own task lists into punchlist"),
            flag("--print", "--dry-run", text="show the difference without changing anything"),
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
    """Check that the server starts, then change either all files or none. Leave a host with a plugin to its plugin."""
    args = context.args
    if args.host not in _HOSTS:
        plugin = EDITORS.get(args.host)
        return _set_up_editor(context, plugin) if plugin else _set_up_extension(context)
    host = get_host(args.host)
    place = _build_place(context, host)
    files = Configurator(context.target.data_dir, context.note)
    plugin = None if args.remove else find_plugin(host, place)
    if plugin:
        _reject_entry_options(context, host, plugin)
    remove = bool(args.remove or plugin)
    try:
        if args.print:
            changes = [files.plan(file, remove=remove) for file in host.list_edits(place)]
            lines = _format_plan(host, place, changes, remove=remove)
            return context.answer(
                _build_value(host, changes, plugin), [*lines, *(_format_plugin(host, plugin) if plugin else ())]
            )
        if not remove:
            list_tools([place.punch, *place.arguments], place.env)
        # --remove --tasks removes only the setting for tasks.
        changes_host = not (args.remove and args.tasks)
        changes = files.change(host, place, remove=remove) if changes_host else []
        _record(change.path for change in changes if change.is_change)
        format_task = _configure_tasks(context, place)
    except SetupError as error:
        show_error("unreadable_file", str(error), "nothing was changed; correct the file, then try again")
        return REFUSED
    except ConfigError as error:
        show_error("configuration", str(error), "correct it or remove it; to write it again: punch mirror add")
        return CONFIGURATION
    except ServerError as error:
        line = shlex.join([place.punch, *place.arguments])
        advice = error.advice or f"to see more, run: {line}"
        show_error("server", f"the MCP server doesn't start, so nothing was changed: {error}", advice)
        return REFUSED
    if changes_host:
        lines = [*_format_changes(context, host, changes, files, remove=remove), *format_task]
        lines += _format_plugin(host, plugin) if plugin else [] if remove else _format_local_plugin(host, place)
    else:
        lines = format_task or ["nothing to remove"]
    return context.answer(_build_value(host, changes, plugin), lines)


def _reject_entry_options(context: Context, host: Host, plugin: Plugin) -> None:
    """Reject options that ask for entries next to a plugin, or that would remove entries shared with others."""
    args = context.args
    if args.conversation or args.allow or args.scope == "project":
        raise StateError(
            f"{host.title} has the plugin {plugin.name}; leave -c, --allow and --scope out, or first run"
            f" {plugin.turn_off}"
        )


def _format_plugin(host: Host, plugin: Plugin) -> list[str]:
    return [
        f"{host.title} has punchlist's plugin {safe(plugin.name)}, so setup adds nothing to its settings",
        f"  to use setup instead, first run: {safe(plugin.turn_off)}",
    ]


def _format_local_plugin(host: Host, place: Place) -> list[str]:
    plugin = find_plugin(host, place._replace(scope="project"))
    if plugin is None:
        return []
    return [
        f"{host.title} also has punchlist's plugin {safe(plugin.name)} in this project, so it would run both here",
        f"  to disable the plugin here: {safe(plugin.turn_off)}",
    ]


def _record(paths: Iterable[str]) -> None:
    for path in paths:
        stored.record(f"the change to {path}")


def _set_up_editor(context: Context, editor: EditorPlugin) -> int:
    """Install or remove an editor's plugin for this user: either all of its files or none."""
    args = context.args
    _reject_options(context, f"{editor.title}'s plugin")
    directory = editor.directory(os.environ)
    try:
        plan = editor.plan(directory, remove=args.remove)
        changed = [file.path for file in plan if file.before != file.after]
        if not args.print:
            editor.install(directory, plan)
            _record(changed)
    except SetupError as error:
        show_error("unreadable_file", safe(str(error)), "nothing was changed; move the file away, then try again")
        return REFUSED
    value = {"host": editor.name, "files": [file.path for file in plan], "changed": changed}
    if not changed:
        return context.answer(value, [f"{editor.title}: nothing to {'remove' if args.remove else 'change'}"])
    lines = [f"{'-' if args.remove else '+'} {safe(path)}" for path in changed]
    if args.print:
        return context.answer(value, lines)
    result = (
        [f"{editor.title}: removed"]
        if args.remove
        else [
            f"{editor.title} is set up; {editor.next_step}",
            f"  to remove it: punch setup {editor.name} --remove",
        ]
    )
    return context.answer(value, [*lines, "", *result])


def _set_up_extension(context: Context) -> int:
    """Install or remove the extension in VS Code and each installed fork."""
    args = context.args
    _reject_options(context, "the extension")
    editors = vscode_extension.find_editors()
    # Removal needs only the extension's name, so it also works if this installation lacks the extension's package.
    package = None if args.remove else vscode_extension.find_package()
    if not editors:
        programs = ", ".join(vscode_extension.PROGRAMS)
        action = f"'Extensions: Install from VSIX...' and choose {package}" if package else "'Extensions: Uninstall'"
        show_error("not_found", f"VS Code not found in PATH (looked for {programs})", f"in VS Code, run {action}")
        return REFUSED
    changed: list[str] = []
    lines: list[str] = []
    for editor in editors:
        words = shlex.join(editor.build_command(package))
        try:
            if args.remove and not editor.has_extension():
                lines.append(f"{editor.name}: nothing to remove")
                continue
            if not args.print:
                editor.change(package)
                stored.record(f"the change to {editor.name}")
        except vscode_extension.ExtensionError as error:
            done = f"already changed: {', '.join(changed)}" if changed else "nothing was changed"
            show_error("host_command", str(error), f"{done}; to see more, run: {words}")
            return REFUSED
        changed.append(editor.name)
        lines.append(f"{'-' if args.remove else '+'} {safe(words)}")
    if changed and not args.print:
        then = "reload its window, then open Punchlist in the activity bar"
        names = ", ".join(changed)
        undo = f"  to remove it: punch setup {vscode_extension.NAME} --remove"
        lines += (
            ["", f"{names}: removed"] if args.remove else ["", f"{names}: the extension is installed; {then}", undo]
        )
    files = [str(package)] if package else []
    return context.answer({"host": vscode_extension.NAME, "files": files, "changed": changed}, lines)


def _reject_options(context: Context, plugin: str) -> None:
    args = context.args
    if args.scope == "project" or args.allow or args.tasks or args.conversation:
        raise UsageError(f"{plugin} is always for this user and all lists; leave the other options out")


def _configure_tasks(context: Context, place: Place) -> list[str]:
    """Start or stop copying Claude Code's own task lists, and return lines that report the change."""
    args = context.args
    if args.host != "claude-code" or args.scope != "user" or not (args.tasks or args.remove):
        return []
    data_dir = context.target.data_dir
    folder = os.path.join(place.env.get("CLAUDE_CONFIG_DIR") or place.get_user_path(".claude"), "tasks")
    is_new = Config(data_dir).set_inbound(folder, enabled=not args.remove)
    if is_new:
        stored.record(f"the setting for {folder}")
    if args.remove:
        return [f"{safe(folder)} is no longer copied; the copied tasks stay"] if is_new else []
    autostart.ensure_running(context.target.socket, data_dir)
    return [f"{safe(folder)} is copied into the projects' lists by the hooks, and never written to"]


def _build_place(context: Context, host: Host) -> Place:
    args = context.args
    name = args.conversation
    if name is not None and not is_conversation_id(name):
        raise UsageError(f"invalid list name {name!r}; use 1 to 128 of A-Z a-z 0-9 . _ : -")
    if args.scope == "project" and host.project is None:
        raise UsageError(f"{host.title} has no project configuration; leave --scope out")
    if args.allow and host.name != "claude-code":
        raise UsageError("--allow works only with claude-code, whose settings list the allowed tools; leave it out")
    if args.tasks and (host.name != "claude-code" or args.scope != "user"):
        raise UsageError(
            "--tasks works only with claude-code and --scope user, because its lists are in the home directory"
        )
    return Place(args.scope, os.getcwd(), os.environ, _resolve_command(args.scope), name, args.allow)


def _build_value(host: Host, changes: list[Change], plugin: Plugin | None) -> dict[str, object]:
    """Return the result as JSON. With a plugin, the changes are those of a removal."""
    changed = [change.path for change in changes if change.is_change]
    value: dict[str, object] = {
        "host": host.name,
        "files": [change.path for change in changes],
        "changed": changed,
    }
    return {**value, "plugin": plugin.name} if plugin else value


def _format_plan(host: Host, place: Place, changes: list[Change], *, remove: bool) -> list[str]:
    changed = [change for change in changes if change.is_change]
    if not changed:
        return [_format_no_change(host, remove=remove)]
    own = HostCommand(host, place)
    by_own = changes[0].is_change and own.can_change(changes[0].before, remove=remove)
    note = [f"# {changes[0].path} is written by: {own.format(remove=remove)}"] if by_own else []
    return [safe_block(line) for line in [*note, *(line for change in changed for line in change.diff())]]


def _format_changes(
    context: Context, host: Host, changes: list[Change], files: Configurator, *, remove: bool
) -> list[str]:
    args = context.args
    changed = [change for change in changes if change.is_change]
    if not changed:
        return [_format_no_change(host, remove=remove)]
    lines = [safe_block(line) for change in changed for line in change.diff()]
    if remove:
        return [*lines, "", f"{host.title}: removed"]
    backups = [
        f"  backup: {safe(files.get_backup_path(change.path))}" for change in changed if change.original is not None
    ]
    undo = f"punch setup {host.name} --scope {args.scope} --remove"
    return [*lines, "", f"{host.title} is set up; {host.next_step}", *backups, f"  to remove it: {undo}"]


def _format_no_change(host: Host, *, remove: bool) -> str:
    return f"{host.title}: nothing to {'remove' if remove else 'change'}"


def _resolve_command(scope: str) -> str:
    """Return the command that a host runs: a path in this user's files, the bare name in a project's shared file."""
    return "punch" if scope == "project" else find_program()
