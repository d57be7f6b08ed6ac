"""`punch daemon backup`, `punch daemon verify` and `punch daemon restore`: what keeps a log, or brings it back.

A log that nobody serves is the daemon's program's business all the same: it is run once, for a report.
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
                "the file to write; it must not exist (DATA_DIR/backups/punchlist-DATE-TIME.db)",
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
            flag(
                "--repair", text="repair the log, while no daemon runs: copy it, cut out the damage, list what is lost"
            ),
        ),
        ("punch daemon verify", "punch daemon verify /media/stick/punchlist.db", "punch daemon verify --repair"),
    ),
    "restore": Usage(
        (
            Argument(("file",), "the backup to restore", _FILE, "file"),
            flag("--dry-run", text="say what would be done, change nothing"),
            YES,
        ),
        ("punch daemon restore /media/stick/punchlist.db", "punch daemon restore --dry-run /media/stick/punchlist.db"),
    ),
}

_UNSOUND = "take another backup; what is sound of this one: a copy of it as log.db, then punch daemon verify --repair"
_LONG_BYTES = 64 << 20
_MIB = 1 << 20
_SHOWN = 100


def run_backup(context: Context) -> int:
    status = context.call("daemon.status")
    path = context.args.file and os.path.abspath(context.args.file)
    if path is None:
        folder = os.path.join(status["data_dir"], "backups")
        make_directories(folder)
        path = os.path.join(folder, time.strftime("punchlist-%Y%m%d-%H%M%S.db"))
    _announce(context, "copying and checking", status["log_bytes"])
    made = context.call("daemon.backup", path=path)
    lines = [
        f"{safe(made['path'])}: {_held(made)}, {made['bytes'] / _MIB:.1f} MiB",
        "every checksum, chain and group in the copy was checked; to bring it back: punch daemon restore FILE",
    ]
    return context.answer(made, lines)


def run_verify(context: Context) -> int:
    """Look through a file, or through the log; exit code 1 when something is damaged. With `--repair` repair it."""
    if context.args.repair:
        if context.args.file is not None:
            raise UsageError("--repair repairs the log in use, not another file: leave FILE out")
        return _repaired(context)
    if context.args.file is not None:
        return _verified(context, os.path.abspath(context.args.file))
    path = os.path.join(context.target.data_dir, "log.db")
    try:
        with Caller(context.target.with_autostart(False)) as client:
            client.open()  # a daemon that is not there is an answer, not an interruption to be waited out
            status: dict[str, Any] = client.call("daemon.status")
            if os.path.realpath(status["data_dir"]) == os.path.realpath(context.target.data_dir):
                _announce(context, "copying", status["log_bytes"])
                return _verified_copy(context, client, path)
    except DaemonUnavailable:
        pass  # then the log is nobody's, or its lock tells
    return _verified(context, path)


def _verified_copy(context: Context, client: Caller, path: str) -> int:
    """Look through a copy of a log in use; its place is one that the daemon can surely write to."""
    with tempfile.TemporaryDirectory(prefix="verify-", dir=os.path.dirname(path)) as directory:
        copy = os.path.join(directory, "copy.db")
        held = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)  # what is not locked, the next daemon takes for a killed program's
            client.call("daemon.backup", {"path": copy, "check": False})
            return _verified(context, copy, path)
        except Damaged as error:
            show_error(error.kind, error.message, "look at the file itself: punch daemon stop; punch daemon verify")
            return REFUSED
        finally:
            os.close(held)


def _verified(context: Context, path: str, shown: str | None = None) -> int:
    code, report = _punchlistd("--verify", path)
    if report is None or "error" in report:
        return _failed(code, report)
    report["path"] = shown or path
    is_own = context.args.file is None
    context.answer(
        report, _report_lines(report, "to repair it: punch daemon stop; punch daemon verify --repair" if is_own else "")
    )
    return REFUSED if code else 0


def _report_lines(report: dict[str, Any], advice: str) -> Iterator[str]:
    problems = report["problems"]
    yield from _problems("damaged", problems)
    many = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    verdict = many if problems else "sound; its checksums and chains match"
    yield f"{safe(report['path'])}: {_held({**report, 'seq': report['head']})}: {verdict}"
    if problems and advice:
        yield advice


def _repaired(context: Context) -> int:
    code, report = _punchlistd("--repair", "--data-dir", context.target.data_dir)
    if report is None or "error" in report:
        return _failed(code, report)
    if report.get("backup"):
        stored.record(f"the repair of {report['path']}")
    return context.answer(report, _mended(report))


def _problems(word: str, problems: Sequence[dict[str, Any]]) -> Iterator[str]:
    for problem in problems[:_SHOWN]:
        place = f" at {problem['seq']}" if problem["seq"] else ""
        reason = "" if problem["reason"] == "it is lost" else f": {safe(problem['reason'])}"
        yield f"{word}: {safe(problem['conversation']) or 'the log'}{place}{reason}"
    if len(problems) > _SHOWN:
        yield f"and {len(problems) - _SHOWN} more: --json has them all"


def _mended(report: dict[str, Any]) -> Iterator[str]:
    if not report.get("backup"):
        yield f"{safe(report['path'])} is sound: nothing to repair"
        return
    yield f"the damaged log is kept as it was: {safe(report['backup'])}"
    yield from _problems("lost", report.get("lost", ()))
    for name in report.get("restored", ()):
        yield f"whole again: {safe(name)}, though events of its history are lost"
    held = _held({**report, "seq": report["head"]})
    yield f"{safe(report['path'])}: {held}, under the new epoch {report['epoch']}: sound"


def run_restore(context: Context) -> int:
    """Put a backup in place of the log, which is set aside; the daemon is stopped for that, and started on it."""
    data_dir, backup = context.target.data_dir, os.path.abspath(context.args.file)
    log = os.path.join(data_dir, "log.db")
    is_there = os.path.lexists(log) or os.path.lexists(f"{log}-wal")
    aside = time.strftime(os.path.join(data_dir, "aside-%Y%m%d-%H%M%S")) if is_there else ""
    if is_there and os.path.exists(backup) and os.path.samefile(log, backup):
        raise UsageError(f"{safe(backup)} is the log itself: name a backup, such as one in {data_dir}/backups")
    served = _served(context)
    # Looked through before anything is stopped: what is no sound backup changes nothing.
    code, found = _punchlistd("--verify", backup)
    if found is None or "error" in found:
        return _failed(code, found)
    if found["problems"]:
        show_error("backup", f"{backup} is not sound: {next(_problems('damaged', found['problems']))}", _UNSOUND)
        return REFUSED
    would = [
        *([f"stop the daemon (process {served})"] if served else []),
        *([f"set aside {safe(log)}, with what belongs to it, in {safe(aside)}"] if is_there else []),
        f"put {safe(backup)} in its place: {_held({**found, 'seq': found['head']})}",
        *(["start the daemon on it"] if served or served == 0 and context.target.autostart else []),
    ]
    if context.args.dry_run:
        plan = {"stops": served, "sets_aside": aside or None, "restores": backup, "head": found["head"]}
        return context.answer(plan, ["would", *(f"  {step}" for step in would)])
    if is_there and not context.confirm(f"Set {log} aside, and put the backup in its place?"):
        raise StateError("nothing was changed")
    if served:
        stop(context.target, context.options)
    code, report = _punchlistd("--restore", backup, "--data-dir", data_dir, *(("--aside", aside) if aside else ()))
    failed = report is None or "error" in report
    begins = bool(served) or (served == 0 and context.target.autostart and not failed)
    hello = start(context.target, context.options) if begins else None
    if report is None or "error" in report:
        return _failed(code, report)
    stored.record(f"the restored {report['path']}")
    lines = [
        f"{safe(report['path'])}: {_held({**report, 'seq': report['head']})}, under the new epoch {report['epoch']}",
        *([f"the log from before is in {safe(aside)}: remove it once you don't need it"] if aside else []),
        f"the daemon runs on it (process {hello.pid})" if hello else "the next command starts the daemon on it",
    ]
    return context.answer({**report, "aside": aside or None}, lines)


def _served(context: Context) -> int | None:
    """The process of the daemon of this data directory; 0: none runs; None: the socket is that of another one."""
    try:
        with Caller(context.target.with_autostart(False), **context.options) as caller:
            return caller.open().pid
    except WrongDataDirectory:
        return None
    except DaemonUnavailable as error:
        if not error.temporary:
            raise
        return 0


def _held(found: dict[str, Any]) -> str:
    events = f"{found['events']:,} event{'' if found['events'] == 1 else 's'}"
    lists = f"{found['conversations']:,} list{'' if found['conversations'] == 1 else 's'}"
    return f"{events} of {lists} up to position {found['seq']:,}"


def _announce(context: Context, what: str, size: int) -> None:
    if size > _LONG_BYTES and sys.stderr.isatty():
        context.note(f"{what} {size // _MIB:,} MiB; the daemon serves meanwhile")


def _failed(code: int, report: dict[str, Any] | None) -> int:
    if report is None:
        show_error("internal_error", f"punchlistd ended without a report (exit code {code})")
        return FAULT
    show_error(str(report["error"]), str(report["message"]))
    return code


def _punchlistd(*arguments: str) -> tuple[int, dict[str, Any] | None]:
    """The exit code of the daemon's program and the report that it printed; progress goes to our standard error."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "punchlistd", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd="/",
        env=environment(),
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, None
