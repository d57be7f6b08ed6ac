"""`punch chat` as a program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.chat.thread import thread_title
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.terminal import spawned


def test_one_turn_is_said_and_done(punch: Any) -> None:
    told = punch("chat", "add", "buy milk")
    assert (told.code, told.out) == (0, "Created task: buy milk\n")
    assert "buy milk" in punch("list").out


def test_a_question_has_exit_code_1_and_the_next_turn_of_the_same_list_answers_it(punch: Any) -> None:
    punch("add", "buy milk")
    asked = punch("chat", "delete 1")
    assert asked.code == 1
    assert asked.lines == ["  #1 buy milk", "Are you sure you want to delete task 1? (yes/no)"]
    assert punch("-c", "other", "chat", "yes").out == "There is no open question. Say “help” for what I understand.\n"
    assert punch("chat", "yes").out == "Deleted task: buy milk\n"


def test_a_rename_shows_both_titles(punch: Any) -> None:
    punch("add", "buy milk")
    asked = punch("chat", "rename 1 to buy \x1b[31moat milk")
    assert asked.lines[0] == r"  #1 buy milk → buy \x1b[31moat milk" and asked.code == 1
    assert punch("chat", "--json", "delete 1").json["about"] == ["#1 buy milk"]


def test_lines_of_a_pipe_are_turns_of_one_thread(punch: Any) -> None:
    told = punch("chat", stdin="add buy milk\n\ndelete 1\nyes\nshow my tasks\n")
    assert told.code == 0 and told.err == ""
    assert told.lines == [
        "Created task: buy milk",
        "  #1 buy milk",
        "Are you sure you want to delete task 1? (yes/no)",
        "Deleted task: buy milk",
        "You have no tasks.",
    ]


@pytest.mark.parametrize("word", ["quit", "exit", "/quit", "/exit"])
def test_quit_leaves_with_its_question_open(punch: Any, word: str) -> None:
    punch("add", "buy milk")
    told = punch("chat", stdin=f"delete 1\n{word}\nyes\n")
    assert told.lines[-1] == "Are you sure you want to delete task 1? (yes/no)"
    assert punch("chat", "yes").out == "Deleted task: buy milk\n"


def test_a_slash_lists_its_commands(punch: Any) -> None:
    told = punch("chat", stdin="/help\n")
    assert told.code == 0 and [line.split()[0] for line in told.lines] == ["/help", "/why", "/undo", "/new", "/quit"]
    told = punch("chat", stdin="/foo\n")
    assert (told.code, told.lines[0], len(told.lines)) == (1, "There is no /foo here, but:", 6)
    assert punch("chat", stdin="/etc/hosts is wrong\n").lines[0].startswith("I didn't understand")


def test_why_shows_what_the_last_answer_did(punch: Any) -> None:
    told = punch("chat", stdin="add buy milk\n/why\nhello\n/why\n")
    opened, added = told.lines[1:3]
    assert re.fullmatch(r"✓ ConversationOpened \(seq \d+\)", opened)
    assert re.fullmatch(r"✓ TaskAdded #1 buy milk \(seq \d+\)", added)
    assert told.lines[-1] == "the last answer changed nothing"


def test_a_thread_in_which_nothing_was_said_says_so(punch: Any) -> None:
    opened = {"conversation": "chat-0a1b", "kind": "chat", "metadata": {"list": "default"}}
    assert punch("daemon", "call", "conversation.open", json.dumps(opened)).code == 0
    assert punch("chat", "--threads").lines == ["chat-0a1b  (nothing said yet)"]


def test_json_has_the_receipts_which_are_events_of_the_log(punch: Any) -> None:
    told = punch("chat", "--json", "add buy milk").json
    (receipt,) = [one for one in told["receipts"] if one["type"] == "TaskAdded"]
    assert (receipt["title"], told["text"], told["source"]) == ("buy milk", "Created task: buy milk", "receipts")
    events = [json.loads(line) for line in punch("log", "--json").lines]
    assert receipt["seq"] in {event["seq"] for event in events if event["event"]["type"] == "TaskAdded"}


def test_threads_are_listed_and_chosen_and_no_list_shows_them(punch: Any) -> None:
    assert "no thread" in punch("chat", "--threads").out
    punch("chat", "add one")
    punch("chat", "--new", "add two")
    newest, oldest = punch("chat", "--threads").lines
    assert newest.endswith("add two") and oldest.endswith("add one")
    assert punch("chat", "--thread", oldest.split()[0], "show 1").lines[0] == "Task 1: one"
    assert "chat-" not in punch("conversations").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--new", "--thread", "chat-1", "hi"), "give one of them"),
        (("--threads", "hi"), "go without a text"),
        (("--thread", "default", "hi"), "is a list, not a chat thread"),
        ((" ",), "the message is empty"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(punch: Any, words: tuple[str, ...], said: str) -> None:
    punch("add", "something")
    told = punch("chat", *words)
    assert told.code == 2 and said in told.err


def test_a_thread_that_is_not_there_is_told(punch: Any) -> None:
    told = punch("chat", "--thread", "chat-9", "hi")
    assert told.code == 1 and "chat-9" in told.err


def test_a_users_thread_is_left_to_that_user(punch: Any) -> None:
    punch("chat", "--user", "ann", "add ann's task")
    thread = punch("chat", "--user", "ann", "--threads").lines[0].split()[0]
    told = punch("chat", "--thread", thread, "add stolen")
    assert told.code == 1 and "punch chat --user ann" in told.err
    assert punch("-c", "my:default", "chat", "show my tasks").lines == ["You have no tasks."]
    assert punch("chat", "--user", "ann", "--thread", thread, "show my tasks").lines[1:] == ["  ☐ #1 ann's task"]


def test_stopping_where_nothing_runs_says_so(punch: Any) -> None:
    assert punch("chat", "--stop").out == "nothing is being worked on\n"


def test_a_hostile_title_reaches_no_terminal_as_it_is(punch: Any) -> None:
    punch("chat", "add \x1b[31mred\u202e")
    assert "\x1b" not in punch("chat", "show my tasks").out


def test_a_model_reads_what_is_said_and_its_use_is_told(punch: Any) -> None:
    with serving(honest) as script:
        told = punch("chat", "--model", "m", "--base-url", script.url, "add eggs")
        assert (told.code, told.out) == (0, "Created task: eggs\n")
        assert len(script.asked) == 2
        punch("chat", "--rules", "--model", "m", "--base-url", script.url, "add flour")
        assert len(script.asked) == 2
    (line,) = punch("chat", "--usage").lines
    assert line.split()[1:] == ["200", "in", "20", "out"]


def test_a_models_words_carry_their_mark(punch: Any) -> None:
    with serving(lambda _: "Milk's on the list!") as script:
        told = punch("chat", "--model", "m", "--base-url", script.url, "put milk on it")
        assert (told.code, told.lines) == (0, ["Milk's on the list!", "  no task was read or changed"])
        assert punch("chat", "--json", "--model", "m", "--base-url", script.url, "hi").json["mark"] == told.lines[1][2:]


def test_a_model_that_is_away_is_told_beside_the_answer(punch: Any) -> None:
    told = punch("chat", "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "add eggs")
    assert (told.code, told.out, told.err) == (
        0,
        "Created task: eggs\n",
        "(the model was away (refused: no server listens at 127.0.0.1:1))\n",
    )


def test_settings_that_are_wrong_are_a_usage_error(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_CHAT_KEY_COMMAND", "false")
    told = punch("chat", "--model", "m", "add eggs")
    assert told.code == 2 and "key_command ended with exit code 1" in told.err


def test_what_the_daemon_refuses_has_exit_code_1(punch: Any) -> None:
    punch("add", "first")
    punch("add", "second", "--blocked-by", "1")
    told = punch("chat", "complete 2")
    assert told.code == 1 and told.out.startswith("That did not work: ")
    assert punch("chat", "complete 1").code == 0


def test_the_session_of_the_page_is_what_is_answered(punch: Any) -> None:
    page = Path(__file__).resolve().parents[6] / "docs" / "chat.md"
    (block,) = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    parts = re.split(r"^› ", block, flags=re.MULTILINE)[1:]
    said = [part.split("\n", 1)[0] for part in parts]
    beside = re.compile(r"  (?:✓ \w+ #|#)")  # receipts and tasks, which a terminal shows dimmed
    shown = [
        line
        for part in parts
        for line in part.splitlines()[1:]
        if line and not (beside.match(line) and "☐" not in line)
    ]
    told = punch("chat", stdin="\n".join(said) + "\n")
    assert [line for line in told.lines if not beside.match(line)] == [line for line in shown if not beside.match(line)]


def test_a_thread_has_its_first_words_as_title(punch: Any) -> None:
    punch("chat", "add  caf\x1b[31mé " + "o" * 100)
    (thread,) = punch("chat", "--threads", "--json").json
    assert thread["title"] == thread_title("add  caf\x1b[31mé " + "o" * 100)
    assert punch("chat", "--threads").out.count("\\x1b") == 1


def test_a_verbose_chat_tells_its_tools_and_each_call(punch: Any) -> None:
    def logged(*words: str) -> list[str]:
        with spawned("chat", *words) as chat:
            return chat.communicate(timeout=30)[1].splitlines()

    punch("add", "tea")
    offered, called = logged("--verbose", "add buy \x1b[2Jmilk")
    assert "tools available to the agent (the rules): [create_todo_task, " in offered
    assert re.search(r" create_todo_task \{.*buy .*milk.*\} -> done \{", called)
    assert "\x1b" not in called
    assert "delete_todo_task" in (asked := logged("--verbose", "delete 1")[1])
    assert "-> asks the user" in asked
    assert logged("no") == [], "without --verbose nothing is logged"
