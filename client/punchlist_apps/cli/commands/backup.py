"""`punch daemon backup`, `punch daemon verify` and `punch daemon restore`.

The client never opens a log. If no daemon is serving the log, the command runs the daemon's program once and reads its
report.
"""

import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from typing import Any

from punchlist.base.text import safe
from punchlist.connection.starter import environment
from punchlist.errors import DaemonUnavailable, Damaged, WrongDataDirectory
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.installing.supervisor import start, stop
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, flag
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.exit_codes import FAULT, REFUSED
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_schemas.rendezvous import make_directories

_FILE: dict[str, Any] = {"metavar": "FILE"}

COMMANDS = {
    "backup": Usage(
        (
            Argument(
                ("file",),
                "the new file to write (default: DATA_DIR/backups/punchlist-DATE-TIME.db)",
                {**_FILE, "nargs": "?"},
                "file",
            ),
        ),
        ("punch daemon backup", "punch daemon backup /media/stick/punchlist.db"),
    ),
    "verify": Usage(
        (
            Argument(
                ("file",),
                "a log or a backup that no daemon has open (default: the log in use)",
                {**_FILE, "nargs": "?"},
                "file",
            ),
            flag("--repair", text="repair the log while no daemon runs: copy it, remove the damage, list losses"),
        ),
        ("punch daemon verify", "punch daemon verify /media/stick/punchlist.db", "punch daemon verify --repair"),
    ),
    "restore": Usage(
        (
            Argument(("file",), "the backup to restore", _FILE, "file"),
            flag("--dry-run", text="show what would be done, without doing it"),
            YES,
        ),
        ("punch daemon restore /media/stick/punchlist.db", "punch daemon restore --dry-run /media/stick/punchlist.db"),
    ),
}

_DAMAGED_ADVICE = "use another backup; to salvage this one, copy it to log.db and run: punch daemon verify --repair"
_LONG_BYTES = 64 << 20
_MIB = 1 << 20
_MAX_PROBLEMS = 100


def run_backup(context: Context) -> int:
    status = context.call("daemon.status")
    path = context.args.file and os.path.abspath(context.args.file)
    if path is None:
        folder = os.path.join(status["data_dir"], "backups")
        make_directories(folder)
        path = os.path.join(folder, time.strftime("punchlist-%Y%m%d-%H%M%S.db"))
    _announce(context, "copying and checking", status["log_bytes"])
    result = context.call("daemon.backup", path=path)
    lines = [
        f"{safe(result['path'])}: {_format_contents(result)}, {result['bytes'] / _MIB:.1f} MiB",
        "all checksums, chains and groups in the copy are valid; to restore it: punch daemon restore FILE",
    ]
    return context.answer(result, lines)


def run_verify(context: Context) -> int:
    """Verify a file or the log, and return exit code 1 if it is damaged. With `--repair`, repair the log."""
    if context.args.repair:
        if context.args.file is not None:
            raise UsageError("--repair works only on the log in use; leave FILE out")
        return _repair(context)
    if context.args.file is not None:
        return _verify(context, os.path.abspath(context.args.file))
    path = os.path.join(context.target.data_dir, "log.db")
    try:
        with Caller(context.target.with_autostart(False)) as client:
            client.open()  # fails immediately without a daemon, whereas a call would retry
            status: dict[str, Any] = client.call("daemon.status")
            if os.path.realpath(status["data_dir"]) == os.path.realpath(context.target.data_dir):
                _announce(context, "copying", status["log_bytes"])
                return _verify_copy(context, client, path)
    except DaemonUnavailable:
        pass  # no daemon seems to serve the log; if one does, the program below reports that the log is locked
    return _verify(context, path)


def _verify_copy(context: Context, client: Caller, path: str) -> int:
    """Verify a copy of a log that is in use. The copy is created next to the log, where the daemon can write."""
    with tempfile.TemporaryDirectory(prefix="verify-", dir=os.path.dirname(path)) as directory:
        copy = os.path.join(directory, "copy.db")
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Lock the directory: a daemon that starts treats an unlocked directory as left over from a killed program.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            client.call("daemon.backup", {"path": copy, "check": False})
            return _verify(context, copy, path)
        except Damaged as error:
            show_error(error.kind, error.message, "verify the file itself: punch daemon stop; punch daemon verify")
            return REFUSED
        finally:
            os.close(descriptor)


def _verify(context: Context, path: str, original: str | None = None) -> int:
    """Verify a log file. Report `original` as its path if `path` is a copy."""
    code, report = _run_punchlistd("--verify", path)
    if report is None or "error" in report:
        return _show_failure(code, report)
    report["path"] = original or path
    advice = "to repair it: punch daemon stop; punch daemon verify --repair" if context.args.file is None else ""
    context.answer(report, _format_report(report, advice))
    return REFUSED if code else 0


def _format_report(report: dict[str, Any], advice: str) -> Iterator[str]:
    problems = report["problems"]
    yield from _format_problems("damaged", problems)
    count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    verdict = count if problems else "no damage; its checksums and chains match"
    yield f"{safe(report['path'])}: {_format_contents({**report, 'seq': report['head']})}: {verdict}"
    if problems and advice:
        yield advice


def _repair(context: Context) -> int:
    code, report = _run_punchlistd("--repair", "--data-dir", context.target.data_dir)
    if report is None or "error" in report:
        return _show_failure(code, report)
    if report.get("backup"):
        stored.record(f"the repair of {report['path']}")
    return context.answer(report, _format_repair(report))


def _format_problems(word: str, problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    for problem in problems[:_MAX_PROBLEMS]:
        place = f" at {problem['seq']}" if problem["seq"] else ""
        reason = "" if problem["reason"] == "it is lost" else f": {safe(problem['reason'])}"
        yield f"{word}: {safe(problem['conversation']) or 'the log'}{place}{reason}"
    if len(problems) > _MAX_PROBLEMS:
        yield f"and {len(problems) - _MAX_PROBLEMS} more; to list all: --json"


def _format_repair(report: dict[str, Any]) -> Iterator[str]:
    if not report.get("backup"):
        yield f"{safe(report['path'])} has no damage: nothing to repair"
        return
    yield f"the damaged log was kept as {safe(report['backup'])}"
    yield from _format_problems("lost", report.get("lost", ()))
    for name in report.get("restored", ()):
        yield f"restored: {safe(name)}, without some events of its history"
    contents = _format_contents({**report, "seq": report["head"]})
    yield f"{safe(report['path'])}: {contents}, with the new epoch {report['epoch']}: no damage"


def run_restore(context: Context) -> int:
    """Move the log aside and put a backup in its place. The daemon is stopped before and started again afterwards."""
    data_dir, backup = context.target.data_dir, os.path.abspath(context.args.file)
    log = os.path.join(data_dir, "log.db")
    has_log = os.path.lexists(log) or os.path.lexists(f"{log}-wal")
    aside = time.strftime(os.path.join(data_dir, "aside-%Y%m%d-%H%M%S")) if has_log else ""
    if has_log and os.path.exists(backup) and os.path.samefile(log, backup):
        raise UsageError(f"{safe(backup)} is the log itself; name a backup, such as one in {data_dir}/backups")
    pid = _find_daemon(context)
    # Verify the backup first, so that a damaged backup doesn't change anything.
    code, contents = _run_punchlistd("--verify", backup)
    if contents is None or "error" in contents:
        return _show_failure(code, contents)
    if contents["problems"]:
        problem = next(_format_problems("damaged", contents["problems"]))
        show_error("backup", f"{backup} has damage: {problem}", _DAMAGED_ADVICE)
        return REFUSED
    steps = [
        *([f"stop the daemon (process {pid})"] if pid else []),
        *([f"move {safe(log)} and its other files to {safe(aside)}"] if has_log else []),
        f"put {safe(backup)} in its place: {_format_contents({**contents, 'seq': contents['head']})}",
        *(["start the daemon"] if pid or pid == 0 and context.target.autostart else []),
    ]
    if context.args.dry_run:
        plan = {"stops": pid, "sets_aside": aside or None, "restores": backup, "head": contents["head"]}
        return context.answer(plan, ["would", *(f"  {step}" for step in steps)])
    if has_log and not context.confirm(f"Move {log} aside, and put the backup in its place?"):
        raise StateError("nothing was changed")
    if pid:
        stop(context.target, context.options)
    code, report = _run_punchlistd("--restore", backup, "--data-dir", data_dir, *(("--aside", aside) if aside else ()))
    failed = report is None or "error" in report
    must_start = bool(pid) or (pid == 0 and context.target.autostart and not failed)
    hello = start(context.target, context.options) if must_start else None
    if report is None or "error" in report:
        return _show_failure(code, report)
    stored.record(f"the restored {report['path']}")
    restored = _format_contents({**report, "seq": report["head"]})
    lines = [
        f"{safe(report['path'])}: {restored}, with the new epoch {report['epoch']}",
        *([f"the previous log is in {safe(aside)}; remove it once you don't need it"] if aside else []),
        f"the daemon uses it (process {hello.pid})" if hello else "the next command starts the daemon",
    ]
    return context.answer({**report, "aside": aside or None}, lines)


def _find_daemon(context: Context) -> int | None:
    """Return the process id of the data directory's daemon; 0 if none is running, None if the socket isn't its own."""
    try:
        with Caller(context.target.with_autostart(False), **context.options) as caller:
            return caller.open().pid
    except WrongDataDirectory:
        return None
    except DaemonUnavailable as error:
        if not error.temporary:
            raise
        return 0


def _format_contents(log: dict[str, Any]) -> str:
    events = f"{log['events']:,} event{'' if log['events'] == 1 else 's'}"
    lists = f"{log['conversations']:,} list{'' if log['conversations'] == 1 else 's'}"
    return f"{events} of {lists} up to position {log['seq']:,}"


def _announce(context: Context, what: str, size: int) -> None:
    if size > _LONG_BYTES and sys.stderr.isatty():
        context.note(f"{what} {size // _MIB:,} MiB; the daemon continues to serve")


def _show_failure(code: int, report: dict[str, Any] | None) -> int:
    if report is None:
        show_error("internal_error", f"punchlistd ended without a report (exit code {code})")
        return FAULT
    show_error(str(report["error"]), str(report["message"]))
    return code


def _run_punchlistd(*arguments: str) -> tuple[int, dict[str, Any] | None]:
    """Run the daemon's program and return its exit code and report.

    The program writes its progress to standard error.
    """
    process = subprocess.run(
        [sys.executable, "-P", "-m", "punchlistd", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd="/",
        env=environment(),
        check=False,
    )
    try:
        return process.returncode, json.loads(process.stdout)
    except ValueError:
        return process.returncode, None
