"""Every command escapes other users' text on every stream that is a terminal."""

import json
import re
import shlex
import sys
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from punchlist import Client, connect
from punchlist_apps.cli.parsing.arguments import COMMON, Argument
from punchlist_apps.cli.parsing.index import COMMANDS, Entry
from punchlist_testing.daemon import Spawned, spawned_daemon
from punchlist_testing.repositories import repository
from punchlist_testing.terminal import Terminal, environment

EVIL = "evil\x1b]52;c;cm0=\x07\x1b]8;;http://x\x1b\\\x1b[31337mC1\x9b31337m\x9d0;t\x9cbidi\u202eRLO\u2066\u200f\x07\r\x7f\U000e0041"
LINE = EVIL.replace("\r", "")
"""The part of `EVIL` that the daemon accepts in a title or a name."""

FILE = EVIL.replace("/", "_")
OWN = re.compile(r"\x1b\[\??[0-9;]*[A-Za-z]")
"""Control sequences of the command line itself: colors and the live view."""

TERMINALS = 4
"""Number of terminals in parallel, because commands that follow or serve are slow."""

Line = tuple[dict[str, str], list[str]]

PRINTING = [command for command in COMMANDS.values() if command.name != "ui"]
"""Commands that print lines.

`punch ui` isn't one of them: it draws a full screen with sequences of all kinds. `punchlist_apps.ui.parts` has its own
tests.
"""


def parse_words(example: str, home: Path) -> list[str]:
    """Return the words after `punch` in an example, without the shell's own words."""
    ours = next(part for part in re.split(r"[<>|;]|&&", example) if re.search(r"\bpunch\b", part))
    words = shlex.split(ours.replace("~", str(home)))
    return words[words.index("punch") + 1 :]


def build_hostile_line(command: Entry, argument: Argument) -> list[str]:
    """Return a command line with a hostile value for one argument."""
    value = FILE if argument.complete == "file" else EVIL
    if argument.is_positional:
        return [command.name, *([value] if argument.options.get("nargs") != "+" else [value, "2"])]
    joined = [f"{argument.flags[-1]}={value}"] if argument.takes_value else [f"{argument.flags[-1]}={EVIL}"]
    return [command.name, *joined, *("1" for positional in command.usage.arguments if positional.is_positional)]


def fill(client: Client, name: str) -> None:
    """Fill a list with hostile text in every member."""
    plan = client.conversation(name, actor=LINE)
    new: list[dict[str, Any]] = [
        {"title": f"{LINE} {number}", "description": EVIL, "active_form": LINE, "metadata": {EVIL: EVIL}}
        for number in range(6)
    ]
    client.call("conversation.open", {"conversation": name, "title": LINE, "actor": LINE})
    client.call("task.add_many", {"conversation": name, "tasks": new, "actor": LINE})
    client.call("task.edit", {"conversation": name, "task": "3", "add_blocked_by": ["2"], "actor": LINE})
    plan.start("1")
    plan.take(LINE, "2")
    plan.fail("4", EVIL)
    plan.complete("5", EVIL)
    plan.append_message("user", EVIL)


def assert_harmless(text: str, lines: list[Line]) -> None:
    """Check that the output has no control sequences except the command line's own."""
    for part in re.split(r"\r\n==(?=\d+==)", text)[1:]:
        number, _, output = part.partition("==")
        rest = OWN.sub("", output)
        raw = {char for char in rest if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"}} - set("\n\r\t")
        message = f"{lines[int(number)][1]!r} prints {sorted(raw)!r}: {output!r}"
        assert not raw, message
        assert "\x1b[31337" not in output, message
        assert "evil\r" not in output, message


@pytest.fixture
def process(tmp_path: Path) -> Any:
    with spawned_daemon(tmp_path / "d") as process:
        yield process


def run_all(process: Spawned, place: Path, lines: list[Line]) -> None:
    """Run the command lines on a few terminals and check their output."""
    home = place / "home"
    work = repository(home / FILE)
    (home / "tasks").mkdir()
    (work / "plan.md").write_text(f"- [ ] {EVIL}\n")
    with connect(socket=process.socket, autostart=False, name="filler") as client:
        for name in {env.get("PUNCHLIST_CONVERSATION", "") for env, _ in lines} | {"website"}:
            if name.isascii() and name.isprintable() and name:
                fill(client, name)
    env = environment(
        HOME=str(home),
        XDG_CONFIG_HOME=str(home / ".config"),
        XDG_RUNTIME_DIR=str(place),
        PUNCHLIST_SOCKET=process.socket,
        PUNCHLIST_DATA_DIR=process.data_dir,
        PUNCHLIST_AUTOSTART="0",
        PUNCHLIST_OWNER=LINE,
        TERM="xterm-256color",
        BROWSER="true",  # a browser for terminals would wait for keys
    )

    def run(part: int) -> str:
        file = place / f"lines{part}"
        file.write_text(json.dumps(lines[part::TERMINALS]))
        command = [sys.executable, "-m", "punchlist_testing.many_commands", str(file), str(work)]
        terminal = Terminal(command, env, columns=120, rows=40)
        try:
            assert terminal.finish() == 0, terminal.shown[-2000:]
        finally:
            terminal.close()
        return terminal.shown

    with ThreadPoolExecutor() as pool:
        outputs = list(pool.map(run, range(TERMINALS)))
    assert "".join(outputs).count("evil") > len(lines) / 3, "hostile text is printed"
    for part, output in enumerate(outputs):
        assert_harmless(output, lines[part::TERMINALS])


@pytest.mark.long
@pytest.mark.timeout(180)
def test_examples_escape_text_of_others(process: Spawned, tmp_path: Path) -> None:
    examples = [example for command in PRINTING for example in command.usage.examples]
    run_all(
        process,
        tmp_path,
        [
            ({"PUNCHLIST_CONVERSATION": f"list{number}"}, parse_words(example, tmp_path / "home"))
            for number, example in enumerate(examples)
        ],
    )


@pytest.mark.timeout(180)
def test_arguments_are_printed_escaped(process: Spawned, tmp_path: Path) -> None:
    lines: list[Line] = [
        ({"PUNCHLIST_CONVERSATION": "list"}, build_hostile_line(command, argument))
        for command in PRINTING
        for argument in (*command.usage.arguments, *COMMON[:1])
    ]
    lines += [
        ({"PUNCHLIST_CONVERSATION": "list"}, build_hostile_line(COMMANDS["list"], argument)) for argument in COMMON
    ]
    lines += [({"PUNCHLIST_CONVERSATION": EVIL}, ["list"]), ({}, [EVIL]), ({}, ["list", f"--{EVIL}"])]
    run_all(process, tmp_path, lines)
