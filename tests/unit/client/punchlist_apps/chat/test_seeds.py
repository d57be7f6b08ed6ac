"""Examples and rules from the specifications of two chat assistants, verbatim."""

import pytest

from punchlist import AsyncClient
from punchlist.errors import Forbidden, NotFound
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_testing.chat import Talk


async def test_greeting_calls_no_tool(twelve: Talk) -> None:
    told = await twelve.told("hello, how are you?")
    assert told.startswith("Hello! I'm doing well, thank you")
    assert await twelve.tools() == [] and "task" not in told


async def test_each_answer_is_a_new_message(twelve: Talk) -> None:
    first = await twelve.told("show me my tasks")
    before = twelve.turn
    assert (await twelve.told("what is your name?")).startswith("I'm your Todo AI Assistant")
    assert await twelve.tools() == []
    answer = await twelve.thread.find_answer(before)
    assert answer is not None and answer["text"] == first


async def test_listed_count_matches_log(twelve: Talk) -> None:
    told = await twelve.told("show me my tasks")
    assert told.startswith("You have 12 tasks:")
    assert await twelve.tools() == [("list_todo_tasks", {})]
    assert [line.split(" ", 4)[4] for line in told.splitlines()[1:]] == await twelve.open()


async def test_delete_all_asks_once_and_verifies(twelve: Talk) -> None:
    asked = await twelve.say("delete all my tasks")
    assert asked["text"] == "Are you sure you want to delete all 12 tasks? (yes/no)"
    assert len(await twelve.open()) == 12
    told = await twelve.told("yes")
    assert told == "I've deleted all 12 tasks. Verified: Your task list is now empty."
    assert [name for name, _ in await twelve.tools()] == ["delete_todo_task", "list_todo_tasks"]
    assert await twelve.open() == []
    await twelve.check(twelve.turn)


TABLE: list[tuple[str, str, dict[str, str], str]] = [
    ("Add buy milk", "create_todo_task", {"title": "buy milk"}, "Created task: buy milk"),
    ("Remind me to call Ann", "create_todo_task", {"title": "call Ann"}, "Created task: call Ann"),
    ("Show task 3", "get_todo_task", {"task_id": "3"}, "Task 3: Task number 3\nStatus: pending"),
    ("Details for 3", "get_todo_task", {"task_id": "3"}, "Task 3: Task number 3\nStatus: pending"),
    ("What's on my list?", "list_todo_tasks", {}, "You have 12 tasks:"),
    ("Show all", "list_todo_tasks", {}, "You have 12 tasks:"),
    ("Rename task 4 to Done soon", "update_todo_task", {"task_id": "4", "title": "Done soon"},
     "Are you sure you want to rename task 4? (yes/no)"),
    ("Finish task 5", "complete_todo_task", {"task_id": "5"}, "Completed task: Task number 5"),
    ("Done with 5", "complete_todo_task", {"task_id": "5"}, "Completed task: Task number 5"),
    ("Delete task 6", "delete_todo_task", {"task_id": "6"}, "Are you sure you want to delete task 6? (yes/no)"),
    ("Remove task 6", "delete_todo_task", {"task_id": "6"}, "Are you sure you want to delete task 6? (yes/no)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tool", "arguments", "confirmation"), TABLE, ids=[row[0] for row in TABLE])
async def test_decision_table_rows(
    twelve: Talk, text: str, tool: str, arguments: dict[str, str], confirmation: str
) -> None:
    told = await twelve.told(text)
    assert await twelve.tools() == [(tool, arguments)]
    assert told == confirmation or (tool == "list_todo_tasks" and told.startswith(confirmation))


async def test_only_deletion_needs_clear_yes(twelve: Talk) -> None:
    for answer, left in (("no", 12), ("maybe", 12), ("delete it and all others", 12), ("yes", 11)):
        assert (await twelve.say("delete task 6"))["asks"]
        await twelve.say(answer)
        assert len(await twelve.open()) == left, answer
        await twelve.say("no")
    await twelve.say("Delete task 7, yes I'm sure")
    assert len(await twelve.open()) == 10


async def test_history_is_immutable_with_unique_ids(twelve: Talk) -> None:
    seen: list[tuple[str, object]] = []
    for text in ("hello", "add x", "show my tasks", "delete 3", "yes", "undo that"):
        await twelve.say(text)
        page = await twelve.thread.queue.messages(limit=1_000)
        assert [(one.message, one.content) for one in page.messages][: len(seen)] == seen
        seen = [(one.message, one.content) for one in page.messages]
    assert len({id for id, _ in seen}) == len(seen)


async def test_context_has_newest_messages(talk: Talk) -> None:
    for number in range(14):
        await talk.say(f"hello {number}")
    last = await talk.thread.list_exchanges(None)
    assert [one.text for one in last] == [f"hello {number}" for number in range(4, 14)]


async def test_users_are_isolated(client: AsyncClient) -> None:
    async with client.as_user("ann") as anns, client.as_user("bob") as bobs:
        ann = Talk(await Thread.open(anns, "my:default"), Worker())
        bob = Talk(await Thread.open(bobs, "my:default"), Worker())
        await ann.say("add ann's secret")
        assert await bob.told("show my tasks") == "You have no tasks."
        assert await ann.told("show my tasks") == "You have 1 task:\n  ☐ #1 ann's secret"
        with pytest.raises(NotFound):
            await Thread.find(bobs, ann.thread.id)
        with pytest.raises(NotFound):
            await Thread(bobs, ann.thread.id, "my:default").send("hello")
        assert [one.conversation for one in (await bobs.conversations(kind="chat")).conversations] == [bob.thread.id]
        with pytest.raises(Forbidden, match="is a thread of the user ann"):
            await Thread.find(client, ann.thread.id)
        with pytest.raises(Forbidden, match="is a thread of the user ann"):
            await Thread.open(client, "default", ann.thread.id)


async def test_person_owns_command_line_claims_in_chat(twelve: Talk) -> None:
    plan = twelve.thread.client.conversation("plan", actor="ann")
    await plan.take("ann", "3", keep=True)
    await twelve.say("complete task 3")
    assert (await plan.get("3")).status == "in_progress", "the chat has no person"
    twelve.thread.person = "ann"
    assert await twelve.told("complete task 3") == "Completed task: Task number 3"
    assert (await plan.get("3")).status == "completed"


async def test_deletion_question_names_owner(twelve: Talk) -> None:
    plan = twelve.thread.client.conversation("plan", actor="ann")
    twelve.thread.person = "ann"
    await plan.take("ann", "3", keep=True)
    await plan.take("claude-code/7f3c1a", "4", keep=True)
    question = await twelve.told("delete all my tasks")
    told = "claude-code/7f3c1a is working on task 4. Are you sure you want to delete all 12 tasks? (yes/no)"
    assert question == told
    await plan.take("codex/9b2e41", "5", keep=True)
    assert await twelve.told("yes") == "Nothing was changed: task 5 has changed since I asked."
    assert len(await twelve.open()) == 12
