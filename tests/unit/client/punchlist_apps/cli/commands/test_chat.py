"""`punch chat` as a program."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.chat.thread import thread_title
from punchlist_testing.scripted_model import honest, serving
from punchlist_testing.terminal import spawned


def test_message_changes_list(punch: Any) -> None:
    outcome = punch("chat", "add", "buy milk")
    assert (outcome.code, outcome.out) == (0, "Created task: buy milk\n")
    assert "buy milk" in punch("list").out


def test_question_exits_1_and_next_turn_answers_it(punch: Any) -> None:
    punch("add", "buy milk")
    outcome = punch("chat", "delete 1")
    assert outcome.code == 1
    assert outcome.lines == ["  #1 buy milk", "Are you sure you want to delete task 1? (yes/no)"]
    assert punch("-c", "other", "chat", "yes").out == "There is no open question. Say “help” for what I understand.\n"
    assert punch("chat", "yes").out == "Deleted task: buy milk\n"


def test_a_rename_shows_both_titles(punch: Any) -> None:
    punch("add", "buy milk")
    outcome = punch("chat", "rename 1 to buy \x1b[31moat milk")
    assert outcome.lines[0] == r"  #1 buy milk → buy \x1b[31moat milk" and outcome.code == 1
    assert punch("chat", "--json", "delete 1").json["about"] == ["#1 buy milk"]


def test_piped_lines_are_turns_of_one_thread(punch: Any) -> None:
    outcome = punch("chat", stdin="add buy milk\n\ndelete 1\nyes\nshow my tasks\n")
    assert outcome.code == 0 and outcome.err == ""
    assert outcome.lines == [
        "Created task: buy milk",
        "  #1 buy milk",
        "Are you sure you want to delete task 1? (yes/no)",
        "Deleted task: buy milk",
        "You have no tasks.",
    ]


@pytest.mark.parametrize("word", ["quit", "exit", "/quit", "/exit"])
def test_quit_keeps_question_open(punch: Any, word: str) -> None:
    punch("add", "buy milk")
    outcome = punch("chat", stdin=f"delete 1\n{word}\nyes\n")
    assert outcome.lines[-1] == "Are you sure you want to delete task 1? (yes/no)"
    assert punch("chat", "yes").out == "Deleted task: buy milk\n"


def test_unknown_slash_command_lists_commands(punch: Any) -> None:
    outcome = punch("chat", stdin="/help\n")
    assert outcome.code == 0 and [line.split()[0] for line in outcome.lines] == [
        "/help",
        "/why",
        "/undo",
        "/new",
        "/quit",
    ]
    outcome = punch("chat", stdin="/foo\n")
    assert (outcome.code, outcome.lines[0], len(outcome.lines)) == (1, "Unknown command /foo. Commands:", 6)
    assert punch("chat", stdin="/etc/hosts is wrong\n").lines[0].startswith("I didn't understand")


def test_why_shows_changes_of_last_answer(punch: Any) -> None:
    outcome = punch("chat", stdin="add buy milk\n/why\nhello\n/why\n")
    opened, added = outcome.lines[1:3]
    assert re.fullmatch(r"✓ began the list \(seq \d+\)", opened)
    assert re.fullmatch(r"✓ added #1 buy milk \(seq \d+\)", added)
    assert outcome.lines[-1] == "the last answer changed nothing"


def test_failed_and_blocked_tasks_are_listed_with_reasons(punch: Any) -> None:
    punch("add", "Paint")
    punch("add", "Sand", "--blocked-by", "1")
    punch("fail", "1", "--reason", "no brush")
    assert punch("-c", "default", "chat", "what failed in default?").lines == [
        "You have 1 failed task:",
        "  ✗ #1 Paint (no brush)",
    ]
    assert punch("chat", "what is blocked?").lines == ["You have 1 blocked task:", "  ☐ #2 Sand (waits for #1)"]
    assert punch("chat", "failed tasks").lines[0] == "You have 1 failed task:"


def test_question_about_another_list_names_the_command(punch: Any) -> None:
    punch("-c", "relaunch", "add", "secret")
    outcome = punch("chat", "what is left in relaunch?")
    assert outcome.code == 1
    assert outcome.out == "This chat is about default, not about relaunch.\n"
    assert outcome.err == "ask there: punch chat -c relaunch 'what is left in relaunch?'\n"
    assert punch("chat", "-c", "relaunch", "what is left in relaunch?").lines[1] == "  ☐ #1 secret"


def test_unclear_message_offers_the_nearest_sentences(punch: Any) -> None:
    outcome = punch("chat", "--json", "what on earth failed here")
    assert outcome.code == 1
    assert outcome.json["offers"][0] == "what failed?" and len(outcome.json["offers"]) == 3
    assert "Nearest are “what failed?”, “" in outcome.json["text"]


def test_empty_thread_is_marked(punch: Any) -> None:
    opened = {"conversation": "chat-0a1b", "kind": "chat", "metadata": {"list": "default"}}
    assert punch("daemon", "call", "conversation.open", json.dumps(opened)).code == 0
    assert punch("chat", "--threads").lines == ["chat-0a1b  (empty)"]


def test_json_receipts_are_log_events(punch: Any) -> None:
    result = punch("chat", "--json", "add buy milk").json
    (receipt,) = [one for one in result["receipts"] if one["type"] == "TaskAdded"]
    assert (receipt["title"], result["text"], result["source"]) == ("buy milk", "Created task: buy milk", "receipts")
    events = [json.loads(line) for line in punch("log", "--json").lines]
    assert receipt["seq"] in {event["seq"] for event in events if event["event"]["type"] == "TaskAdded"}


def test_threads_are_listed_and_hidden_from_lists(punch: Any) -> None:
    assert "no thread" in punch("chat", "--threads").out
    punch("chat", "add one")
    punch("chat", "--new", "add two")
    newest, oldest = punch("chat", "--threads").lines
    assert newest.endswith("add two") and oldest.endswith("add one")
    assert punch("chat", "--thread", oldest.split()[0], "show 1").lines[0] == "Task 1: one"
    assert "chat-" not in punch("conversations").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--new", "--thread", "chat-1", "hi"), "leave one out"),
        (("--threads", "hi"), "can't be combined with a message"),
        (("--thread", "default", "hi"), "is a list, not a chat thread"),
        ((" ",), "the message is empty"),
    ],
)
def test_conflicting_options_are_usage_errors(punch: Any, words: tuple[str, ...], message: str) -> None:
    punch("add", "something")
    outcome = punch("chat", *words)
    assert outcome.code == 2 and message in outcome.err


def test_unknown_thread_is_reported(punch: Any) -> None:
    outcome = punch("chat", "--thread", "chat-9", "hi")
    assert outcome.code == 1 and "chat-9" in outcome.err


def test_thread_of_user_is_private(punch: Any) -> None:
    punch("chat", "--user", "ann", "add ann's task")
    thread = punch("chat", "--user", "ann", "--threads").lines[0].split()[0]
    outcome = punch("chat", "--thread", thread, "add stolen")
    assert outcome.code == 1 and "punch chat --user ann" in outcome.err
    assert punch("-c", "my:default", "chat", "show my tasks").lines == ["You have no tasks."]
    assert punch("chat", "--user", "ann", "--thread", thread, "show my tasks").lines[1:] == ["  ☐ #1 ann's task"]


def test_stop_without_turn_is_reported(punch: Any) -> None:
    assert punch("chat", "--stop").out == "no turn is running\n"


def test_hostile_title_is_escaped(punch: Any) -> None:
    punch("chat", "add \x1b[31mred\u202e")
    assert "\x1b" not in punch("chat", "show my tasks").out


def test_model_answers_and_its_usage_is_counted(punch: Any) -> None:
    with serving(honest) as script:
        outcome = punch("chat", "--model", "m", "--base-url", script.url, "add eggs")
        assert (outcome.code, outcome.out) == (0, "Created task: eggs\n")
        assert len(script.asked) == 2
        punch("chat", "--rules", "--model", "m", "--base-url", script.url, "add flour")
        assert len(script.asked) == 2
    (line,) = punch("chat", "--usage").lines
    assert line.split()[1:] == ["200", "in", "20", "out"]


def test_model_answers_are_marked(punch: Any) -> None:
    with serving(lambda _: "Milk's on the list!") as script:
        outcome = punch("chat", "--model", "m", "--base-url", script.url, "put milk on it")
        assert (outcome.code, outcome.lines) == (0, ["Milk's on the list!", "  no task was read or changed"])
        assert (
            punch("chat", "--json", "--model", "m", "--base-url", script.url, "hi").json["mark"] == outcome.lines[1][2:]
        )


def test_unavailable_model_is_noted_with_answer(punch: Any) -> None:
    outcome = punch("chat", "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "add eggs")
    assert (outcome.code, outcome.out, outcome.err) == (
        0,
        "Created task: eggs\n",
        "(the model was away (refused: no server listens at 127.0.0.1:1))\n",
    )


def test_invalid_settings_are_usage_errors(punch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUNCHLIST_CHAT_KEY_COMMAND", "false")
    outcome = punch("chat", "--model", "m", "add eggs")
    assert outcome.code == 2 and "key_command ended with exit code 1" in outcome.err


def test_rejected_request_exits_1(punch: Any) -> None:
    punch("add", "first")
    punch("add", "second", "--blocked-by", "1")
    outcome = punch("chat", "complete 2")
    assert outcome.code == 1 and outcome.out.startswith("That did not work: ")
    assert punch("chat", "complete 1").code == 0


def test_documented_session_matches_program(punch: Any) -> None:
    page = Path(__file__).resolve().parents[6] / "docs" / "chat.md"
    (block,) = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    parts = re.split(r"^› ", block, flags=re.MULTILINE)[1:]
    said = [part.split("\n", 1)[0] for part in parts]
    beside = re.compile(r"  (?:✓ \w+ #|#)")  # receipts and tasks, which terminals show dimmed
    shown = [
        line
        for part in parts
        for line in part.splitlines()[1:]
        if line and not (beside.match(line) and "☐" not in line)
    ]
    outcome = punch("chat", stdin="\n".join(said) + "\n")
    assert [line for line in outcome.lines if not beside.match(line)] == [
        line for line in shown if not beside.match(line)
    ]


def test_first_message_becomes_thread_title(punch: Any) -> None:
    punch("chat", "add  caf\x1b[31mé " + "o" * 100)
    (thread,) = punch("chat", "--threads", "--json").json
    assert thread["title"] == thread_title("add  caf\x1b[31mé " + "o" * 100)
    assert punch("chat", "--threads").out.count("\\x1b") == 1


def test_verbose_chat_logs_tools_and_calls(punch: Any) -> None:
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
