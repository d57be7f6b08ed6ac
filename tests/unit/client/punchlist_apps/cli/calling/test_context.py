import os
import pwd
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from punchlist import connect
from punchlist.errors import DaemonUnavailable, InvalidParams
from punchlist_apps.cli.calling.context import Context, parse_loose_value, parse_task_id, parse_task_ids
from punchlist_apps.cli.parsing.parser import parse
from punchlist_apps.cli.printing.failure import UsageError
from punchlist_testing.daemon import Running
from punchlist_testing.terminal import terminal

Make = Callable[..., Context]


@pytest.fixture
def context(home: Path) -> Generator[Make]:
    contexts: list[Context] = []

    def make(*words: str) -> Context:
        contexts.append(Context(parse(words)))
        return contexts[-1]

    yield make
    for command in contexts:
        command.close()


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["3"], ["3"]),
        (["#3", "4"], ["3", "4"]),
        (["1,2", " #5 , 6,"], ["1", "2", "5", "6"]),
        (["3-5", "#8-#9,12"], ["3", "4", "5", "8", "9", "12"]),
        (["7-7", "a-b"], ["7", "a-b"]),
        ([], None),
        (None, None),
    ],
)
def test_task_ids_are_parsed_as_people_write_them(texts: list[str] | None, expected: list[str] | None) -> None:
    assert parse_task_ids(texts) == expected
    assert (parse_task_id(" #3 "), parse_task_id(None)) == ("3", None)


@pytest.mark.parametrize("text", ["", " ", "#", ",", "1,,2", "1,#"])
def test_an_invalid_task_id_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="is not a task id"):
        parse_task_ids(["3", text])
    with pytest.raises(UsageError, match="is not a task id"):
        parse_task_id(" # ")


@pytest.mark.parametrize("text", ["5-3", "1-1001", "1-9999999999999999999999"])
def test_an_invalid_or_long_range_is_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range"):
        parse_task_ids([text])


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("true", True), ('{"a": [1]}', {"a": [1]}), ("word", "word"), ('"word"', "word"), ("{1", "{1")],
)
def test_a_value_is_json_or_text(text: str, value: Any) -> None:
    assert parse_loose_value(text) == value


def test_deeply_nested_json_is_text() -> None:
    assert parse_loose_value("[" * 100_000) == "[" * 100_000


def test_the_context_connects_on_first_use_and_once(context: Make, daemon: Running) -> None:
    command = context("list")
    with connect() as other:
        assert len(other.status().clients) == 1
        assert command.client is command.client
        assert len(other.status().clients) == 2
        command.close()
        command.close()
        for _ in range(1_000):
            if len(other.status().clients) == 1:
                break
        assert len(other.status().clients) == 1


def test_a_missing_daemon_is_reported_immediately(context: Make) -> None:
    with pytest.raises(DaemonUnavailable):
        _ = context("list").client


def test_missing_parameters_are_not_sent(context: Make, daemon: Running) -> None:
    command = context("list")
    assert command.read("task.add", title="a", owner=None)["task"]["title"] == "a"
    with pytest.raises(InvalidParams):
        command.client.call("task.add", {"conversation": "default", "title": "a", "owner": None})


def test_a_change_has_the_commands_actor_and_list(
    context: Make, daemon: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    context("list", "--actor", "ada", "-c", "site").change("task.add", title="a")
    monkeypatch.setenv("USER", "bob")
    context("list", "-c", "site").change("task.add", title="b")
    monkeypatch.delenv("USER")
    monkeypatch.delenv("LOGNAME", raising=False)
    context("list", "-c", "site").change("task.add", title="c")
    account = pwd.getpwuid(os.getuid()).pw_name
    with connect() as client:
        assert [event.actor for event in client.read(0, "site")] == ["ada", "ada", "bob", account]


def test_results_are_lines_or_json(context: Make, capfd: pytest.CaptureFixture[str]) -> None:
    value = {"title": "a\u202e"}
    assert context("list").answer(value, ["one", "two"]) == 0
    assert context("list", "--json").answer(value, ["one", "two"]) == 0
    assert context("list").answer(value, []) == 0
    assert capfd.readouterr().out == 'one\ntwo\n{"title":"a\\u202e"}\n'


@pytest.mark.parametrize("words", [("rm", "1"), ("rm", "1", "--yes")])
def test_without_a_terminal_confirmation_counts_as_yes(context: Make, words: tuple[str, ...]) -> None:
    assert context(*words).confirm("Delete?")


@pytest.mark.usefixtures("home")
def test_deleting_asks_on_a_terminal(daemon: Running) -> None:
    with connect() as client:
        plan = client.conversation("default")
        plan.add("a")
        for words, answer, left in ((("rm", "1"), "n", 1), (("list", "clear"), "\n", 1), (("rm", "1"), "y", 0)):
            with terminal(*words) as screen:
                screen.wait_for("[y/N] ")
                screen.type(answer + "\n")
                assert screen.finish() == int(answer != "y")
            assert len(plan.list()) == left
