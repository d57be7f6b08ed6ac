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
    made: list[Context] = []

    def make(*words: str) -> Context:
        made.append(Context(parse(words)))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("texts", "meant"),
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
def test_tasks_are_named_as_people_write_them(texts: list[str] | None, meant: list[str] | None) -> None:
    assert parse_task_ids(texts) == meant
    assert (parse_task_id(" #3 "), parse_task_id(None)) == ("3", None)


@pytest.mark.parametrize("text", ["", " ", "#", ",", "1,,2", "1,#"])
def test_a_text_that_names_no_task_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a task id"):
        parse_task_ids(["3", text])
    with pytest.raises(UsageError, match="is not a task id"):
        parse_task_id(" # ")


@pytest.mark.parametrize("text", ["5-3", "1-1001", "1-9999999999999999999999"])
def test_a_range_that_is_none_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range"):
        parse_task_ids([text])


@pytest.mark.parametrize(
    ("text", "value"),
    [("7", 7), ("true", True), ('{"a": [1]}', {"a": [1]}), ("word", "word"), ('"word"', "word"), ("{1", "{1")],
)
def test_a_value_is_json_or_the_word_itself(text: str, value: Any) -> None:
    assert parse_loose_value(text) == value


def test_a_value_nested_without_end_is_a_word() -> None:
    assert parse_loose_value("[" * 100_000) == "[" * 100_000


def test_nothing_is_connected_until_the_daemon_is_needed_and_then_once(context: Make, daemon: Running) -> None:
    one = context("list")
    with connect() as other:
        assert len(other.status().clients) == 1
        assert one.client is one.client
        assert len(other.status().clients) == 2
        one.close()
        one.close()
        for _ in range(1_000):
            if len(other.status().clients) == 1:
                break
        assert len(other.status().clients) == 1


def test_a_missing_daemon_is_told_at_once(context: Make) -> None:
    with pytest.raises(DaemonUnavailable):
        _ = context("list").client


def test_members_that_were_not_given_are_not_sent(context: Make, daemon: Running) -> None:
    one = context("list")
    assert one.read("task.add", title="a", owner=None)["task"]["title"] == "a"
    with pytest.raises(InvalidParams):
        one.client.call("task.add", {"conversation": "default", "title": "a", "owner": None})


def test_a_change_is_recorded_for_the_actor_of_this_run_in_the_list_of_this_run(
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


def test_an_answer_is_lines_for_people_or_json_for_programs(context: Make, capfd: pytest.CaptureFixture[str]) -> None:
    value = {"title": "a\u202e"}
    assert context("list").answer(value, ["one", "two"]) == 0
    assert context("list", "--json").answer(value, ["one", "two"]) == 0
    assert context("list").answer(value, []) == 0
    assert capfd.readouterr().out == 'one\ntwo\n{"title":"a\\u202e"}\n'


@pytest.mark.parametrize("words", [("rm", "1"), ("rm", "1", "--yes")])
def test_having_nobody_to_ask_counts_as_yes(context: Make, words: tuple[str, ...]) -> None:
    assert context(*words).confirm("Delete?")


@pytest.mark.usefixtures("home")
def test_on_a_terminal_deleting_asks(daemon: Running) -> None:
    with connect() as client:
        plan = client.conversation("default")
        plan.add("a")
        for words, answer, left in ((("rm", "1"), "n", 1), (("list", "clear"), "\n", 1), (("rm", "1"), "y", 0)):
            with terminal(*words) as shown:
                shown.wait_for("[y/N] ")
                shown.type(answer + "\n")
                assert shown.finish() == int(answer != "y")
            assert len(plan.list()) == left
