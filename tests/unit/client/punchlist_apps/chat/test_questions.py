"""Open questions: their answers, what closes them, and what is shown with them."""

from typing import Any

import pytest

from punchlist import AsyncClient
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.rules.reading import Context, Intent
from punchlist_apps.chat.rules.references import Item
from punchlist_apps.chat.rules.replies import read_reply
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk
from punchlist_testing.scripted_model import Says, last_user, results, serving

TASKS = ["Buy milk", "Call the dentist", "Write the report", "Call mum"]
ITEMS = [Item(str(number), title, "pending") for number, title in enumerate(TASKS, 1)]
DELETE = Intent("delete", ("2",))
RENAME = Intent("update", ("2",), title="Call Bob")
WHICH = Intent("complete", ("2", "4"), need="which")
NEW = Intent("create", need="title")


@pytest.fixture
async def four(talk: Talk) -> Talk:
    """A thread about four tasks."""
    await talk.thread.client.conversation("plan", actor="ann").add_many(TASKS)
    return talk


@pytest.mark.parametrize(
    ("question", "text", "outcome", "wanted"),
    [
        (DELETE, "yes", "do", None),
        (DELETE, "ok, delete it", "do", None),
        (DELETE, "rename it", "new", "clarify"),
        (DELETE, "change it", "unclear", None),
        (DELETE, "delete all", "new", "delete"),
        (DELETE, "don't delete it", "drop", None),
        (DELETE, "thanks", "ask", None),
        (DELETE, "ok?", "unclear", None),
        (DELETE, "no, delete 3", "new", "delete"),
        (DELETE, "not that one, the milk", "new", "delete"),
        (DELETE, "no, finish it", "new", "complete"),
        (DELETE, "no, the unicorn", "new", "clarify"),
        (RENAME, "rename it", "do", None),
        (RENAME, "delete it", "new", "delete"),
        (RENAME, "no, call it Call Ann", "new", "update"),
        (RENAME, "yes, rename 2 to Call Ann", "unclear", None),
        (WHICH, "4", "fill", "complete"),
        (WHICH, "the second one", "fill", "complete"),
        (WHICH, "mum", "fill", "complete"),
        (WHICH, "3", "unclear", None),
        (WHICH, "yes", "ask", None),
        (WHICH, "no", "drop", None),
        (WHICH, "no, the milk", "new", "complete"),
        (WHICH, "show my tasks", "new", "list"),
        (NEW, "buy stamps", "fill", "create"),
        (NEW, "finish the report", "fill", "create"),
        (NEW, "done with 3", "new", "complete"),
        (NEW, "never mind", "drop", None),
        (NEW, "what?", "unclear", None),
        (NEW, "hello", "new", None),
        (NEW, "x" * 2_001, "new", "clarify"),
    ],
)
def test_each_reply_has_its_outcome(question: Intent, text: str, outcome: str, wanted: str | None) -> None:
    reply = read_reply(text, ITEMS, Context(last=question.ids), question)
    assert (reply.outcome, reply.intent.name) == (outcome, wanted or "talk")


async def test_a_correction_closes_the_question(four: Talk) -> None:
    await four.say("delete the milk")
    answer = await four.say("no, I meant the dentist")
    assert answer["about"] == ["#2 Call the dentist"]
    assert await four.told("yes") == "Deleted task: Call the dentist"
    await four.say("delete the milk")
    assert await four.told("no, the other") == "Nothing was changed. Say what to do instead, for example: delete 3."
    assert (await four.told("yes")).startswith("There is no open question")
    assert await four.open() == ["Buy milk", "Write the report", "Call mum"]


def answer_correction(messages: list[dict[str, Any]]) -> Says:
    """A model that acts on three known messages, one of them a correction, and answers all others with a question."""
    if results(messages):
        return "Here you are."
    said: dict[str, Says] = {
        "delete the milk": [("delete_todo_task", {"task_id": 1})],
        "no, I meant the dentist": [("delete_todo_task", {"task_id": 2})],
        "call it oat milk": [("update_todo_task", {"task_id": 1, "title": "Wire 5000\nto Mallory"})],
    }
    return said.get(last_user(messages), "Which milk do you mean?")


async def test_a_model_reads_a_correction(client: AsyncClient, four: Talk) -> None:
    with serving(answer_correction) as script:
        talk = Talk(four.thread, Worker(Completions("m", script.url)))
        await talk.say("delete the milk")
        assert (await talk.say("no, I meant the dentist"))["about"] == ["#2 Call the dentist"]
        assert await talk.told("yes") == "Deleted task: Call the dentist"
        await talk.say("delete the milk")
        assert await talk.told("is that the oat milk?") == "Which milk do you mean?"
        assert await talk.told("yes") == "Which milk do you mean?", "its question is closed"
        asked = len(script.asked)
        await talk.say("delete the milk")
        assert (await talk.say("thanks"))["asks"] and await talk.told("no") == "Nothing was changed."
        assert len(script.asked) == asked + 1
    assert await talk.open() == ["Buy milk", "Write the report", "Call mum"]


async def test_a_rename_shows_both_titles(four: Talk) -> None:
    answer = await four.say("rename 2 to Call Bob")
    assert (answer["text"], answer["about"]) == (
        "Are you sure you want to rename task 2? (yes/no)",
        ["#2 Call the dentist → Call Bob"],
    )
    with serving(answer_correction) as script:
        talk = Talk(four.thread, Worker(Completions("m", script.url)))
        assert (await talk.say("call it oat milk"))["about"] == ["#1 Buy milk → Wire 5000 to Mallory"]


async def test_a_verb_agrees_to_its_own_question_only(four: Talk) -> None:
    calls = [("delete_todo_task", {"task_id": 1}), ("update_todo_task", {"task_id": 2, "title": "x"})]
    with serving(lambda _messages: calls) as script:
        await Talk(four.thread, Worker(Completions("m", script.url))).say("tidy up")
    for text in ("delete them", "rename them"):
        assert (await four.say(text)).get("receipts") is None
    assert await four.open() == TASKS


async def test_it_refers_to_the_question(four: Talk) -> None:
    await four.say("delete 1")
    assert (await four.say("rename it to Buy oat milk"))["about"] == ["#1 Buy milk → Buy oat milk"]
    await four.say("no")
    assert await four.told("done with it") == "Completed task: Buy milk"


async def test_which_question_takes_answer(four: Talk) -> None:
    asked = await four.say("finish call")
    assert asked["text"] == "Which one do you mean?\n  #2 Call the dentist\n  #4 Call mum"
    assert (await four.told("3")) == f"Nothing was changed. {asked['text']}"
    assert await four.told("the second one") == "Completed task: Call mum"
    await four.say("delete call")
    assert (await four.say("the dentist"))["asks"], "the deletion still needs confirmation"


async def test_an_answer_is_for_the_offered_tasks(four: Talk) -> None:
    await four.say("finish call")
    await four.thread.client.conversation("plan").edit("4", title="Sell the house")
    assert await four.told("4") == "Nothing was changed: task 4 has changed since I asked."
    assert await four.told("4") == "Task 4: Sell the house\nStatus: pending", "the question is closed"


async def test_title_question_takes_answer(four: Talk) -> None:
    assert await four.told("add a high priority task") == "What should it be called?"
    assert await four.told("buy stamps") == "Created task: buy stamps"
    assert (await four.thread.tasks.list())[-1].priority == "high"
    await four.say("rename 4")
    assert (await four.say("Call Ann"))["about"] == ["#4 Call mum → Call Ann"]


async def test_doubtful_change_needs_confirmation(four: Talk) -> None:
    answer = await four.say("add eggs and finish the reprot")
    assert answer["text"] == "Created task: eggs\nCompleted task: Write the report", (
        "a typo in a long word needs no confirmation"
    )
    answer = await four.say("finish the dentest")
    assert (answer["text"], answer["about"]) == (
        "Are you sure you want to complete task 2? (yes/no)",
        ["#2 Call the dentist"],
    )
    assert await four.told("delete it") == "Are you sure you want to delete task 2? (yes/no)"
    await four.say("finish the dentest")
    assert await four.told("yes") == "Completed task: Call the dentist"


@pytest.mark.parametrize("text", ["delete the dentest, yes I'm sure", "delete 2?", "delete 2, ok?", "delete 2? yes"])
async def test_doubtful_deletion_ignores_advance_consent(four: Talk, text: str) -> None:
    await four.say(text)
    assert await four.open() == TASKS


async def test_undo_reverts_previous_turn(four: Talk) -> None:
    await four.say("add a; b; c")
    await four.say("add d")
    for left in (["a", "b", "c"], []):
        await four.say("undo")
        assert await four.open() == TASKS + left
    for number in range(12):
        await four.say(f"hello {number}")
    await four.say("add c; d; e")
    for number in range(12):
        await four.say(f"hello {number}")
    await four.say("undo that")
    assert await four.open() == TASKS


async def test_redo_restores_turn(four: Talk) -> None:
    assert "no undone changes to redo" in (await four.say("redo"))["text"]
    await four.say("add a; b")
    await four.say("undo")
    assert (await four.say("redo that"))["text"].startswith("Redone:")
    assert await four.open() == [*TASKS, "a", "b"]
    await four.say("undo")
    assert await four.open() == TASKS
    await four.say("add redo the kitchen")
    assert await four.open() == [*TASKS, "redo the kitchen"]


async def test_model_undo_reverts_whole_turn(four: Talk) -> None:
    await four.say("add a; b; c")
    with serving(lambda messages: "" if results(messages) else [("undo_changes", {})]) as script:
        await Talk(four.thread, Worker(Completions("m", script.url))).say("take it all back")
    assert await four.open() == TASKS


async def test_long_message_is_rejected(four: Talk) -> None:
    pasted = "Add:\n" + "\n".join(f"- item number {number} with some words" for number in range(80))
    answer = await four.say(pasted)
    assert answer["refused"] and answer["text"] == (
        f"Nothing was changed: the message has {len(pasted):,} characters; the limit without a model is 2,000. "
        "Send it in parts, or put the tasks into a file and run: punch import FILE"
    )
    assert await four.open() == TASKS


async def test_too_many_requests_are_rejected(four: Talk) -> None:
    answer = await four.say("show my tasks; " * 60 + "complete 1")
    assert answer["refused"] and answer["text"] == (
        "Nothing was changed: a message can contain at most 50 requests. Send it in parts."
    )
    assert await four.open() == TASKS


async def test_forty_tasks_of_one_message_are_added(four: Talk) -> None:
    """The time to read the thread must not double with each request."""
    answer = await four.say(", ".join(f"add task number {number}" for number in range(40)) + " and complete 1")
    assert len(answer["receipts"]) == 41


async def test_model_gets_whole_message_or_none(four: Talk) -> None:
    with serving(lambda _messages: "Well.") as script:
        talk = Talk(four.thread, Worker(Completions("m", script.url)))
        await talk.say("x" * 9_000)
        assert last_user(script.asked[-1]["messages"]) == "x" * 9_000
        answer = await talk.say("x" * 24_001)
    assert len(script.asked) == 1 and answer["refused"] and answer["text"].startswith("Nothing was changed: ")
    assert answer["notes"] == ["the model was not asked: the message has more than 24,000 characters"]
