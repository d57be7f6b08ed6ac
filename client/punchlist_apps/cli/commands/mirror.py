"""`punch mirror`: configure which directories mirror which lists, and run the mirror in the foreground."""

import os
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from punchlist.base.text import safe
from punchlist.taskfiles.config import Config, ConfigError, Entry, Plan
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
                ("directory",),
                "the directory of the files, or a Markdown file",
                {"metavar": "PATH", "nargs": "?"},
                "file",
            ),
            flag("--all", text="mirror all lists, also future ones"),
            choice(
                "--format",
                text="write one file per list (checklist, the default) or one per task (claude)",
                choices=("checklist", "claude"),
            ),
            value(
                "--idle", text="with run: exit after this long without a change", metavar="TIME", type=parse_duration
            ),
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


_POLL_S = 1.0
"""Interval between checks of whether the process is still needed, in seconds."""
_MARKDOWN = (".md", ".markdown")


def run_mirror(context: Context) -> int:
    actions = {"add": _add, "list": _list, "remove": _remove, "run": _run}
    try:
        return actions[context.args.action](context)
    except ConfigError as error:
        show_error("configuration", str(error), "correct it or remove it; to write it again: punch mirror add")
        return CONFIGURATION


def _add(context: Context) -> int:
    args = context.args
    directory = _resolve_path(context)
    if directory.lower().endswith(_MARKDOWN) and os.path.isfile(directory):
        return _add_plan(context, directory)
    if directory.lower().endswith(_MARKDOWN) and not os.path.exists(directory):
        show_error("file", f"no file {directory}", f"write the list to it first: punch export {directory}")
        return REFUSED
    if not os.path.isdir(directory):
        show_error("file", f"{directory} is not a directory", f"create it: mkdir {directory}")
        return REFUSED
    if args.all and args.conversation:
        raise UsageError("-c and --all can't be combined; leave one out")
    names = None if args.all else (context.conversation,)
    entry = Entry(directory, args.format or "checklist", names)
    entries = Config(context.target.data_dir).add(entry)
    stored.record(f"the mirror in {directory}")
    what = "all lists" if names is None else context.conversation
    lines = [f"{safe(directory)} mirrors {what} ({entry.format})", _start(context)]
    return context.answer({"mirrors": entries}, lines)


def _add_plan(context: Context, path: str) -> int:
    if context.args.all or context.args.format:
        raise UsageError("a Markdown file holds one list; leave out --all and --format")
    from punchlist_apps.files.mirror.plan_file import check_plan, forget_plan

    check_plan(path)
    config = Config(context.target.data_dir)
    if Plan(path, context.conversation) not in config.read().plans:
        forget_plan(path, context.conversation, context.target.data_dir)
    config.set_plan(path, context.conversation)
    stored.record(f"the mirror in {path}")
    lines = [f"{safe(path)} and the list {safe(context.conversation)} are now kept in sync", _start(context)]
    return context.answer({"plan": path, "conversation": context.conversation}, lines)


def _start(context: Context) -> str:
    from punchlist_apps.common import autostart

    data_dir = context.target.data_dir
    if context.target.autostart:
        autostart.ensure_running(context.target.socket, data_dir, retry=True)
        return "  a background process updates it; to see problems: punch mirror list"
    return "  to keep it updated: punch mirror run"


def _list(context: Context) -> int:
    config = Config(context.target.data_dir).read()
    report = status(context.target.data_dir)
    problems = report.problems if report else ()
    lines = [
        f"{safe(mirror.directory)}  {mirror.format}  {', '.join(mirror.conversations or ('all',))}"
        for mirror in config.mirrors
    ]
    lines += [f"{safe(path)}  claude, inbound only" for path in config.inbound]
    lines += [_format_plan(plan, context.target.data_dir) for plan in config.plans]
    lines += [f"  {problem.kind}: {safe(problem.file)}: {safe(problem.text)}" for problem in problems]
    value = {"mirrors": config.mirrors, "inbound": config.inbound, "plans": config.plans, "problems": problems}
    return context.answer(value, lines or ["no mirrors"])


def _format_plan(plan: Plan, data_dir: str) -> str:
    from punchlist_apps.files.mirror.plan_file import read_form_name

    form = read_form_name(plan.path, plan.conversation, data_dir)
    return f"{safe(plan.path)}  {form}  {safe(plan.conversation)}"


def _remove(context: Context) -> int:
    directory = _resolve_path(context)
    if Config(context.target.data_dir).set_plan(directory, None):
        stored.record(f"the end of the mirror in {directory}")
        return context.answer({"removed": directory}, [f"{safe(directory)} is no longer updated; the file stays"])
    if not Config(context.target.data_dir).remove(directory, context.args.conversation):
        show_error("not_found", f"no such mirror in {directory}", "see all mirrors: punch mirror list")
        return REFUSED
    stored.record(f"the end of the mirror in {directory}")
    return context.answer({"removed": directory}, [f"{safe(directory)} is no longer updated; its files stay"])


def _run(context: Context) -> int:
    import anyio

    return anyio.run(_serve_mirror, context)


async def _serve_mirror(context: Context) -> int:
    import anyio

    from punchlist.clients.aio import connect_async
    from punchlist_apps.files.mirror.runner import AlreadyRunning, Runner

    target = context.target
    _read_usage(Config(target.data_dir))  # fails early if the configuration can't be read
    async with connect_async(**context.options_of("punch mirror")) as client:
        report = Report(target.data_dir, _log)
        runner = Runner(client, target.data_dir, report)
        try:
            lock = runner.acquire()
        except AlreadyRunning as error:
            show_error("already_running", str(error), "see what it mirrors: punch mirror list")
            return LOST_RACE
        with lock:
            async with anyio.create_task_group() as group:
                group.start_soon(_cancel_on_signal, group.cancel_scope)
                idle_s = None if context.args.idle is None else context.args.idle / 1000
                group.start_soon(_cancel_when_unused, group.cancel_scope, Config(target.data_dir), runner, idle_s)
                group.start_soon(runner.run)
    return 0


async def _cancel_on_signal(scope: "anyio.CancelScope") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()
            return


async def _cancel_when_unused(
    scope: "anyio.CancelScope", config: Config, runner: "Runner", idle_s: float | None
) -> None:
    """Cancel `scope` when no mirrors are left, or after `idle_s` seconds without a change.

    A process that was started only for Claude Code's tasks keeps running if a directory or a plan has been added since.
    """
    import anyio

    initial, current = None, _Usage(files=True, any=True)
    while True:
        with suppress(ConfigError):  # the file is being edited; the runner reports persistent errors
            current = _read_usage(config)
        initial = initial or current
        is_idle = idle_s is not None and time.monotonic() >= runner.active_at + idle_s
        if not current.any or (is_idle and current.files == initial.files):
            break
        await anyio.sleep(min(idle_s or _POLL_S, _POLL_S))
    scope.cancel()


class _Usage(NamedTuple):
    """Whether lists are mirrored to files, and whether there are any mirrors."""

    files: bool
    any: bool


def _read_usage(config: Config) -> _Usage:
    entries = config.read()
    files = bool(entries.mirrors or entries.plans)
    return _Usage(files, files or bool(entries.inbound))


def _log(problem: Problem) -> None:
    stamp = time.strftime("%H:%M:%S")
    print(f"{stamp} {problem.kind}: {safe(problem.file)}: {safe(problem.text)}", file=sys.stderr, flush=True)


def _resolve_path(context: Context) -> str:
    if not context.args.directory:
        raise UsageError("no path given; name a directory or a Markdown file")
    return os.path.realpath(os.path.expanduser(context.args.directory))
