"""`punch mirror`: which directories mirror what, and the process in the foreground that keeps them so."""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from punchlist.base.text import safe
from punchlist.taskfiles.config import Config, ConfigError, Entry
from punchlist.taskfiles.report import Problem, Report, status
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.parsing.arguments import Argument, Usage, choice, flag, value
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import CONFIGURATION, LOST_RACE, REFUSED
from punchlist_apps.cli.printing.failure import UsageError, show_error
from punchlist_apps.common.terminal.argument_types import parse_duration

COMMANDS = {
    "mirror": Usage(
        (
            choice("action", text="what to do", choices=("add", "list", "remove", "run")),
            Argument(
                ("directory",), "where the files are, or a Markdown file", {"metavar": "PATH", "nargs": "?"}, "file"
            ),
            flag("--all", text="mirror all lists, those of the future too"),
            choice(
                "--format",
                text="checklist: one file for each list; claude: one for each task",
                choices=("checklist", "claude"),
            ),
            value("--idle", text="with run: end after this long without a change", metavar="TIME", type=parse_duration),
        ),
        (
            "punch mirror add PLAN.md",
            "punch mirror add . -c website",
            "punch mirror add ~/tasks --all",
            "punch mirror run",
            "punch mirror list",
        ),
    ),
}

if TYPE_CHECKING:
    import anyio

    from punchlist_apps.files.mirror.runner import Runner


_LOOK_S = 1.0
"""Time between two looks at whether the process is still needed, in seconds."""
_MARKDOWN = (".md", ".markdown")


def run_mirror(context: Context) -> int:
    actions = {"add": _add, "list": _list, "remove": _remove, "run": _run}
    try:
        return actions[context.args.action](context)
    except ConfigError as error:
        show_error("configuration", str(error), "put it right, or remove it: it is written by punch mirror add")
        return CONFIGURATION


def _add(context: Context) -> int:
    args = context.args
    directory = _directory(context)
    if directory.lower().endswith(_MARKDOWN) and os.path.isfile(directory):
        return _add_plan(context, directory)
    if directory.lower().endswith(_MARKDOWN) and not os.path.exists(directory):
        show_error("file", f"there is no file {directory}", f"punch export {directory} writes the list to it first")
        return REFUSED
    if not os.path.isdir(directory):
        show_error("file", f"{directory} is not a directory", f"mkdir {directory}")
        return REFUSED
    if args.all and args.conversation:
        raise UsageError("name one list, or --all")
    names = None if args.all else (context.conversation,)
    entry = Entry(directory, args.format or "checklist", names)
    entries = Config(context.target.data_dir).add(entry)
    stored.record(f"the mirror in {directory}")
    what = "all lists" if names is None else context.conversation
    lines = [f"{safe(directory)} mirrors {what} ({entry.format})", _start(context)]
    return context.answer({"mirrors": entries}, lines)


def _add_plan(context: Context, path: str) -> int:
    if context.args.all or context.args.format:
        raise UsageError("a Markdown file has the tasks of one list; leave --all and --format out")
    Config(context.target.data_dir).set_plan(path, context.conversation)
    stored.record(f"the mirror in {path}")
    lines = [f"{safe(path)} and the list {safe(context.conversation)} are kept in step", _start(context)]
    return context.answer({"plan": path, "conversation": context.conversation}, lines)


def _start(context: Context) -> str:
    from punchlist_apps.common import autostart

    data_dir = context.target.data_dir
    if context.target.autostart:
        autostart.ensure_running(context.target.socket, data_dir, retry=True)
        return "  a process in the background keeps that up; punch mirror list shows problems"
    return "  to keep it up: punch mirror run"


def _list(context: Context) -> int:
    config = Config(context.target.data_dir).read()
    found = status(context.target.data_dir)
    problems = found.problems if found else ()
    lines = [
        f"{safe(one.directory)}  {one.format}  {', '.join(one.conversations or ('all',))}" for one in config.mirrors
    ]
    lines += [f"{safe(one)}  claude, one way in" for one in config.inbound]
    lines += [f"{safe(one.path)}  markdown  {safe(one.conversation)}" for one in config.plans]
    lines += [f"  {one.kind}: {safe(one.file)}: {safe(one.text)}" for one in problems]
    value = {"mirrors": config.mirrors, "inbound": config.inbound, "plans": config.plans, "problems": problems}
    return context.answer(value, lines or ["nothing is mirrored"])


def _remove(context: Context) -> int:
    directory = _directory(context)
    if Config(context.target.data_dir).set_plan(directory, None):
        stored.record(f"the end of the mirror in {directory}")
        return context.answer({"removed": directory}, [f"{safe(directory)} is no longer kept up; it stays as it is"])
    if not Config(context.target.data_dir).remove(directory, context.args.conversation):
        show_error("not_found", f"{directory} mirrors no such thing", "punch mirror list shows what there is")
        return REFUSED
    stored.record(f"the end of the mirror in {directory}")
    return context.answer({"removed": directory}, [f"{safe(directory)} is no longer kept up; its files stay"])


def _run(context: Context) -> int:
    import anyio

    return anyio.run(_running, context)


async def _running(context: Context) -> int:
    import anyio

    from punchlist.clients.aio import connect_async
    from punchlist_apps.files.mirror.runner import AlreadyRunning, Runner

    target = context.target
    _mirrored(Config(target.data_dir))  # one that can't be read is an error before anything starts
    async with connect_async(**context.options_of("punch mirror")) as client:
        report = Report(target.data_dir, _log)
        runner = Runner(client, target.data_dir, report)
        try:
            lock = runner.acquire()
        except AlreadyRunning as error:
            show_error("already_running", str(error), "punch mirror list shows what it mirrors")
            return LOST_RACE
        with lock:
            async with anyio.create_task_group() as group:
                group.start_soon(_until_signal, group.cancel_scope)
                idle_s = None if context.args.idle is None else context.args.idle / 1000
                group.start_soon(_until_unused, group.cancel_scope, Config(target.data_dir), runner, idle_s)
                group.start_soon(runner.run)
    return 0


async def _until_signal(scope: "anyio.CancelScope") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _until_unused(scope: "anyio.CancelScope", config: Config, runner: "Runner", idle_s: float | None) -> None:
    """End a mirror once nothing is mirrored any more, or nothing changed for `idle_s` seconds.

    One that was started for Claude Code's tasks alone stays if a directory or a plan was added since.
    """
    import anyio

    began_with, now = None, _Mirrored(files=True, any=True)
    while True:
        with suppress(ConfigError):  # somebody is editing it: the runner reports that
            now = _mirrored(config)
        began_with = began_with or now
        is_idle = idle_s is not None and time.monotonic() >= runner.active_at + idle_s
        if not now.any or (is_idle and now.files == began_with.files):
            break
        await anyio.sleep(min(idle_s or _LOOK_S, _LOOK_S))
    scope.cancel()


class _Mirrored(NamedTuple):
    """Whether lists are mirrored to files, and whether anything is mirrored."""

    files: bool
    any: bool


def _mirrored(config: Config) -> _Mirrored:
    found = config.read()
    files = bool(found.mirrors or found.plans)
    return _Mirrored(files, files or bool(found.inbound))


def _log(problem: Problem) -> None:
    stamp = time.strftime("%H:%M:%S")
    print(f"{stamp} {problem.kind}: {safe(problem.file)}: {safe(problem.text)}", file=sys.stderr, flush=True)


def _directory(context: Context) -> str:
    if not context.args.directory:
        raise UsageError("name a directory or a Markdown file")
    return os.path.realpath(os.path.expanduser(context.args.directory))
