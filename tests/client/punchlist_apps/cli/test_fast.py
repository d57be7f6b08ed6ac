import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from punchlist.connection.waiting import Waiting
from punchlist_apps.cli import fast
from punchlist_apps.cli.calling.person import person
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.common import wire
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import environment
from punchlist_testing.unmeasured import unmeasured

HEAVY = {
    *("asyncio", "anyio", "msgspec", "dataclasses", "inspect", "typing", "re", "json", "socket", "argparse", "enum"),
    *("collections", "functools", "contextlib", "subprocess", "threading", "logging"),
}


def imported(*words: str) -> set[str]:
    """Modules that a fresh interpreter loads for a command, beyond those of a bare one."""
    code = "import sys; before = set(sys.modules); from punchlist_apps.cli import main; main(sys.argv[1:])"
    code += "; print(*(set(sys.modules) - before), file=sys.stderr)"
    # -S: what site and its .pth files load is the installation's matter.
    words = (sys.executable, "-S", "-c", code, *words)
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=True, env=environment())
    return set(done.stderr.split())


FAST = ["list", "list --json", "show 1", "status --line", "add b", "add -c c b", "start 1", "done 1 --json", "pause #1"]
ASKED_BY_SHELLS = ["complete task -- done", "complete list"]


@pytest.mark.parametrize(
    "words", [tuple(line.split()) for line in (*FAST, *ASKED_BY_SHELLS)], ids=(*FAST, *ASKED_BY_SHELLS)
)
def test_a_command_of_every_day_imports_nothing_heavy(punch: Any, home: Path, words: tuple[str, ...]) -> None:
    punch("add", "a")
    (home / "run" / "status").write_text("1 open, 0 in progress\n")
    loaded = imported(*words)
    assert "punchlist_apps.cli.fast" in loaded
    assert loaded.isdisjoint(HEAVY), loaded & HEAVY
    assert "punchlist_apps.cli.dispatch" not in loaded


def test_starting_again_what_one_has_begun_is_fast_and_what_another_has_is_refused(
    punch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    punch("add", "a")
    first = punch("start", "1")
    loaded = imported("start", "1")
    assert loaded.isdisjoint(HEAVY), loaded & HEAVY
    assert punch("start", "1").out == first.out
    monkeypatch.setenv("PUNCHLIST_OWNER", "eve")
    refused = punch("start", "1")
    assert refused.code == REFUSED and f"is held by {person(os.environ)}" in refused.err


APPLICATION = (
    *("", ".cli", ".cli.calling", ".cli.calling.person", ".cli.fast"),
    *(".common", ".common.plain_json", ".common.terminal", ".common.terminal.render", ".common.terminal.style"),
    ".common.wire",
)
LIBRARY = (
    *("", ".base", ".base.departures", ".base.project", ".base.text", ".base.tree"),
    *(".connection", ".connection.launch", ".connection.waiting", ".errors"),
)
SCHEMAS = (
    *("", ".build", ".directory", ".project_file", ".rendezvous", ".repository", ".system", ".system.linux"),
    ".vocabulary",
)


def test_adding_a_task_loads_these_modules_of_ours_and_no_other(punch: Any) -> None:
    loaded = {name for name in imported("add", "b") if name.startswith("punchlist")}
    ours = {"punchlist_apps": APPLICATION, "punchlist": LIBRARY, "punchlist_schemas": SCHEMAS}
    assert loaded == {package + name for package, names in ours.items() for name in names}


FULL = [
    *(
        "next",
        "queue claim",
        "start 1 2",
        "done 1 -r text",
        "add b -p high",
        "edit 1 -t t",
        "move 1 --to-end",
        "rm 1 -y",
    ),
    *("undo", "log", "why 1", "list --ready", "daemon status", "list all", "agent prime -c default --session s"),
]


@pytest.mark.parametrize("words", [tuple(line.split()) for line in FULL], ids=FULL)
def test_a_command_that_only_calls_loads_neither_the_library_nor_an_event_loop(
    punch: Any, words: tuple[str, ...]
) -> None:
    for title in ("a", "b", "c"):
        punch("add", title)
    loaded = imported(*words)
    assert "punchlist_apps.cli.dispatch" in loaded
    heavy = set("asyncio anyio msgspec inspect dataclasses socket subprocess difflib traceback shutil".split())
    assert loaded.isdisjoint(heavy), loaded & heavy
    commands = {name for name in loaded if name.startswith("punchlist_apps.cli.commands.")}
    assert len(commands) == 1


IN_EVERY_LOOP = [
    *(
        "next",
        "next --done",
        "next --done 1 -r text",
        "queue claim",
        "queue claim 2 --lease 2h",
        "start 1 2",
        "done 1 --result text",
    ),
    *("add b -p high --label x", "edit 1 -t t --due 3d", "edit 1 --blocked-by 2", "move 1 --to-end"),
    *("agent prime -c default", "agent prime -c default --session s"),
]


@pytest.mark.parametrize("words", [tuple(line.split()) for line in IN_EVERY_LOOP], ids=IN_EVERY_LOOP)
def test_what_an_agent_runs_for_each_task_loads_neither_argparse_nor_openssl(
    punch: Any, words: tuple[str, ...]
) -> None:
    for title in ("a", "b", "c"):
        punch("add", title)
    punch("agent", "prime", "-c", "default", "--session", "s")
    loaded = imported(*words)
    assert "punchlist_apps.cli.dispatch" in loaded
    heavy = {*HEAVY, "gettext", "locale", "hashlib", "_hashlib"}
    assert loaded.isdisjoint(heavy), loaded & heavy


@pytest.mark.parametrize("line", ["\x1b]52;c;eA==\x07 open, 0 in progress", "1 open, 0 in progress; rm", "1 open"])
def test_a_status_line_that_somebody_else_has_written_is_not_shown(punch: Any, home: Path, line: str) -> None:
    punch("add", "a")
    (home / "run" / "status").write_text(line + "\n")
    assert punch("daemon", "status", "--line").out == "1 open, 0 in progress\n"


def test_the_installed_script_imports_nothing_heavy(punch: Any) -> None:
    script = Path(sysconfig.get_path("scripts")) / "punch"
    if not script.exists():
        pytest.skip("punch is not installed in this environment")
    punch("add", "a")
    command = [sys.executable, "-X", "importtime", str(script), "list"]
    done = subprocess.run(command, env=unmeasured(), capture_output=True, text=True, timeout=20, check=True)
    assert "#1 a" in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "punchlist_apps.cli.fast" in loaded
    assert loaded.isdisjoint({"asyncio", "anyio", "msgspec", "dataclasses", "inspect"})


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("add",),
        ("add", "x", "--priority", "high"),
        ("add", "x", "--all"),
        ("done",),
        ("done", "1", "2"),
        ("done", "1,2"),
        ("done", "1", "--result", "x"),
        ("list", "--ready"),
        ("list", "extra"),
        ("list", "-c"),
        ("list", "--line", "--json"),
        ("show",),
        ("show", "1", "2"),
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("home")
def test_whatever_is_unusual_goes_the_full_way(daemon: Running, words: tuple[str, ...]) -> None:
    assert fast.run(words, os.environ) is None


@pytest.mark.usefixtures("home")
def test_without_a_daemon_the_fast_path_steps_aside() -> None:
    for words in (("list",), ("show", "1"), ("status", "--line"), ("add", "x"), ("done", "1")):
        assert fast.run(words, os.environ) is None


def test_a_refusal_is_told_by_the_full_path(punch: Any) -> None:
    assert punch("show", "1").err.startswith("error: ")
    assert punch("list", "-c", "not valid").err.startswith("error: ")
    assert punch("done", "9").err.startswith("error: ")


@pytest.mark.parametrize("words", [("add", "Write", "the lexer"), ("start", "1"), ("done", "#1"), ("reopen", "1")])
def test_a_change_on_the_fast_path_is_the_one_of_the_full_path(
    punch: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same is printed and the same is written, for people and for programs."""
    told: list[Any] = []
    for conversation, is_fast in (("fast", True), ("full", False)):
        punch("daemon", "call", "conversation.open", f"conversation={conversation}")
        punch("daemon", "call", "task.add_many", f"conversation={conversation}", 'tasks=[{"title":"a"},{"title":"b"}]')
        monkeypatch.setenv("PUNCHLIST_CONVERSATION", conversation)
        with monkeypatch.context() as patch:
            if not is_fast:
                patch.setattr(fast, "run", lambda argv, env: None)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
            done = punch(*words)
            assert done.code == 0, done.err
            printed = punch(*words[:1], *(words[1:] if words[0] != "add" else ("again",)), "--json").json
        read = punch("daemon", "call", "event.read", "after=0", f"conversation={conversation}").json["events"]
        told.append((done.out, sorted(printed), [(one["actor"], one["event"]["type"]) for one in read]))
    assert told[0] == told[1]


def test_a_change_whose_answer_was_lost_happens_once(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The daemon has done it, and the fast path never learns: the full path repeats it with the same key."""
    exchange = wire._exchange  # pyright: ignore[reportPrivateUsage]

    def lost(sock: Any, number: int, method: str, params: str, waiting: Waiting) -> str:
        answer = exchange(sock, number, method, params, waiting)
        if method == "task.add":
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(wire, "_exchange", lost)
    assert punch("add", "once").code == 0
    assert [task["title"] for task in punch("list", "--json").json["tasks"]] == ["once"]


def test_the_key_of_a_command_that_was_given_up_is_not_the_next_ones(punch: Any) -> None:
    punch("add", "")
    assert punch("list", "--ready", "--json").code == 0
