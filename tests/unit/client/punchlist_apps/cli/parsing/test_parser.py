from typing import Any

import pytest

from punchlist_apps.cli import main
from punchlist_apps.cli.parsing.index import COMMANDS, GROUPS, SECTIONS
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.cli.parsing.topics import TOPICS
from punchlist_apps.cli.printing.exit_codes import MEANINGS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["lst"], "did you mean 'punch list'?"),
        (["frobnicate"], "see: punch --help"),
        (["create"], "did you mean 'punch add'?"),
        (["ready"], "did you mean 'punch list --ready'?"),
        (["daemon", "sotp"], "did you mean 'punch daemon stop'?"),
        (["queue", "stop"], "did you mean 'punch daemon stop'?"),
        (["list", "foo"], "see: punch list --help"),
        (["daemon", "frobnicate"], "see: punch daemon --help"),
        (["daemon", "--user", "x", "stop"], "unknown option --user"),
        (["list", "--status", "complete"], "did you mean 'completed'?"),
        (["list", "--nonsense"], "--nonsense"),
        (["list", "--\x1b]52;c;eA==\x07\x9b\u202e"], r"unknown arguments: --\x1b]52;c;eA==\x07\x9b\u202e"),
        (["--user", "bob", "list"], "unknown option --user; options before the command: -c, "),
        (["-c", "site", "--jso", "list"], "unknown option --jso; did you mean '--json'?"),
        (["-xsite", "list"], "unknown option -x"),
        (["show"], "missing: ID\n"),
        (["revert"], "missing: --at\n"),
        (["completion"], "missing: shell; choose from bash, zsh, fish\n"),
        (["mirror"], "missing: action; choose from add, list, remove, run\n"),
        (["list", "--limit", "many"], "--limit"),
        (["edit", "3"], "nothing to change"),
        (["move", "3"], "--before, --after or --to-end"),
        (["move", "3", "--before", "1", "--to-end"], "--before, --after or --to-end"),
        (["add", "x", "--meta", "novalue"], "KEY=VALUE"),
        (["list", "clear"], "--yes"),
        (["daemon", "call"], "no method given"),
        (["daemon", "call", "task.lst"], "did you mean task.list?"),
        (["daemon", "call", "task.list", "[1]"], "NAME=VALUE"),
        (["daemon", "call", "task.list", "{1"], "one JSON object"),
        (["daemon", "rpc"], "--stdio"),
    ],
)
def test_a_wrong_command_line_is_explained(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert "--help" in captured.err


@pytest.mark.parametrize(
    "words",
    [
        ["add", "Buy", "-p", "high", "milk"],
        ["add", "Buy", "-c", "home", "some", "--label", "shop", "milk"],
        ["find", "Buy", "-c", "home", "milk"],
        ["note", "3", "Buy", "-c", "home", "milk"],
    ],
)
def test_options_can_be_between_words(words: list[str]) -> None:
    args = parse(words)
    title = vars(args).get("title") or vars(args).get("text") or vars(args)["words"]
    assert (title[0], title[-1]) == ("Buy", "milk")
    assert args.conversation == ("home" if "home" in words else None)


def test_options_of_a_program_stay_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "echo", "-c", "home", "hi"]) == 2
    assert "unknown arguments: hi" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "help_of"),
    [(["list", "--nonsense"], "punch list"), (["--nonsense"], "punch"), (["show"], "punch show"), (["lst"], "punch")],
)
def test_errors_point_to_the_right_help(words: list[str], help_of: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.endswith(f"\n  see: {help_of} --help\n")


def test_common_options_go_before_and_after_the_command() -> None:
    before = parse(["-c", "site", "--json", "list"])
    after = parse(["list", "-c", "site", "--json"])
    assert (before.conversation, before.json) == (after.conversation, after.json) == ("site", True)
    assert parse(["-csite", "--socket=/s", "--no-autostart", "list"]).conversation == "site"
    assert (parse(["list"]).conversation, parse(["list"]).json) == (None, False)


def test_help_and_version_exit_with_0(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0
    output = capfd.readouterr().out
    assert all(f"  {name} " in output for name in COMMANDS if " " not in name)
    assert all(f"  {group} …" in output for group in GROUPS)
    assert "punch 0" in output
    assert all(f"\n  {code:<5}{meaning}\n" in output for code, meaning in MEANINGS.items())


def test_help_accepts_groups_and_commands(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    output = capfd.readouterr().out
    assert [line for line in output.splitlines() if line in (f"{title}:" for title in SECTIONS)] == [
        f"{title}:" for title in SECTIONS
    ]
    assert main(["help", "ls"]) == main(["list", "--help"]) == 0
    both = capfd.readouterr().out
    assert both == 2 * both[: len(both) // 2]


def test_a_double_dash_may_precede_the_command(punch: Any) -> None:
    assert punch("--json", "--", "list", "--ready").json["tasks"] == []
    assert parse(["-c", "site", "run", "--", "ls", "-c", "x"]).argv == ["ls", "-c", "x"]


@pytest.mark.parametrize("group", GROUPS)
def test_a_group_without_command_shows_its_commands(group: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["help", group]) == main([group, "--help"]) == 0
    output = capfd.readouterr().out
    assert all(output.count(f"  {entry.name} ") == 2 for entry in GROUPS[group][1])


@pytest.mark.parametrize("topic", TOPICS)
def test_help_has_pages_on_topics(topic: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["help", "topics"]) == 0
    assert f" {topic}" in capfd.readouterr().out
    if topic not in COMMANDS:
        assert main(["help", topic]) == 0
        assert capfd.readouterr().out == TOPICS[topic]


def test_common_options_may_split_a_commands_words() -> None:
    args = parse(["daemon", "--socket", "/s", "stop", "--json"])
    assert (args.command, args.socket, args.json) == ("daemon stop", "/s", True)
    assert parse(["list", "--status", "pending"]).command == "list"
    assert parse(["list", "all", "--active"]).command == "list all"


def test_a_former_name_works_with_a_hint(punch: Any) -> None:
    outcome = punch("conversations")
    assert (outcome.code, outcome.out) == (0, "no lists\n")
    assert "is now `punch list all`" in outcome.err
    assert punch("lists").err == ""


@pytest.mark.parametrize("words", [("why",), ("daemon",), ("space", "add")])
def test_command_help_mentions_common_options(run: Any, words: tuple[str, ...]) -> None:
    outcome = run(*words, "--help")
    assert outcome.lines[-1] == "common options: punch --help"
    assert "--socket" not in outcome.out
    assert "--socket" in run("--help").out
    assert run("list", "--socket").code == 2, "the option is accepted"
