"""LangChain's todos on a list of punchlist, with the real package and a scripted model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from punchlist_testing.optional import require_package

require_package("langchain")

import anyio
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver

from punchlist import Client, connect
from punchlist.tools import Toolbox, ToolCaller
from punchlist.tools.adapters import todo_middleware
from punchlist.tools.budget import count_tokens
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.frameworks import Turn
from punchlist_testing.scripted_chat import ScriptedChat
from punchlist_testing.store import damaged_log

Respond = Callable[[list[BaseMessage]], Turn]


def write(**todos: str) -> Turn:
    """Return the model's call that writes these todos: content -> status."""
    return [("write_todos", {"todos": [{"content": content, "status": status} for content, status in todos.items()]})]


def script(*turns: Turn) -> Respond:
    rest = iter([*turns, "Done."])
    return lambda _messages: next(rest)


def start(box: Toolbox, respond: Respond, **options: Any) -> Any:
    return create_agent(ScriptedChat(respond=respond), middleware=[todo_middleware(box)], **options)


def work(box: Toolbox, *turns: Turn) -> dict[str, Any]:
    return start(box, script(*turns)).invoke({"messages": [("user", "Work.")]})


def contents(state: dict[str, Any]) -> dict[str, str]:
    return {todo["content"]: todo["status"] for todo in state["todos"]}


def test_todos_are_claimed_tasks(client: Client, box: Toolbox) -> None:
    state = work(box, write(Copy="in_progress", Publish="pending"))
    assert contents(state) == {"Copy": "in_progress", "Publish": "pending"}
    tasks = client.conversation("work").list()
    assert [(task.title, task.status, task.owner) for task in tasks] == [
        ("Copy", "in_progress", "ann"),
        ("Publish", "pending", ""),
    ]


def test_equal_contents_stay_the_same_task(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    work(box, write(Copy="in_progress", Drop="pending", Publish="pending"))
    plan.note("1", "two pages")
    state = work(box, write(Publish="in_progress", Copy="completed"))
    assert contents(state) == {"Publish": "in_progress", "Copy": "completed"}
    assert [(task.id, task.title) for task in plan.list()] == [("3", "Publish"), ("1", "Copy")]
    assert [note.text for note in plan.get("1").notes] == ["two pages"]


def test_tasks_of_others_stay_and_are_named(client: Client, box: Toolbox) -> None:
    other = Toolbox(client, ToolCaller("work", "bob"))
    other.call("native", "plan", {"tasks": ["One", "Two"]})
    other.call("native", "next")
    state = work(box, write(New="pending"))
    assert contents(state) == {"One": "in_progress", "New": "pending"}
    assert "#1 One stays in progress: bob works on it." in state["messages"][-2].text
    assert not other.call("native", "next", {"result": "by bob"}).refused


def test_written_back_tasks_stay_paused_and_failed(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    for title in ("Copy", "Publish"):
        plan.add(title)
        plan.start(plan.list()[-1].id)
    plan.pause("1")
    plan.fail("2", "no key")
    state = work(box, write(Copy="pending", Publish="pending"))
    assert contents(state) == {"Copy": "pending", "Publish": "pending"}
    assert [(task.status, task.fail_reason) for task in plan.list()] == [("paused", ""), ("failed", "no key")]
    assert "'Publish', 'status': 'failed'" in state["messages"][-2].text
    work(box, write(Copy="in_progress", Publish="completed"))
    assert [task.status for task in plan.list()] == ["in_progress", "completed"]


def test_model_sees_todos_of_earlier_threads_once(client: Client, box: Toolbox) -> None:
    client.conversation("work").add("Copy")
    seen: list[list[str]] = []

    def respond(messages: list[BaseMessage]) -> Turn:
        seen.append([message.text for message in messages[1:]])
        return "Done."

    agent = start(box, respond, checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    for _ in range(2):
        agent.invoke({"messages": [("user", "Work.")]}, thread)
    told = (
        "The todo list is shared and is now [{'content': 'Copy', 'status': 'pending'}]\n"
        "write_todos drops the todos it leaves out."
    )
    assert seen == [["Work.", told], ["Work.", told, "Done.", "Work."]]


def test_tasks_the_model_has_not_seen_stay(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")

    def respond(messages: list[BaseMessage]) -> Turn:
        if messages[-1].type == "tool":
            return "Done."
        plan.add("Added meanwhile")
        return write(Copy="pending")

    state = start(box, respond).invoke({"messages": [("user", "Work.")]})
    assert contents(state) == {"Added meanwhile": "pending", "Copy": "pending"}
    assert contents(work(box, write(Copy="pending"))) == {"Copy": "pending"}


def test_change_by_others_survives_unchanged_todos(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add_many([{"title": title} for title in ("Copy", "Publish", "Step", "Step")])
    plan.complete("1", "all pages")

    def respond(messages: list[BaseMessage]) -> Turn:
        if messages[-1].type == "tool":
            return "Done."
        plan.reopen("1")
        plan.complete("2", "it is out")
        plan.complete("4", "second")
        return [("write_todos", {"todos": todos})]

    todos = [
        {"content": "Copy", "status": "completed"},
        {"content": "Publish", "status": "pending"},
        {"content": "Step", "status": "in_progress"},
        {"content": "Step", "status": "pending"},
    ]
    start(box, respond).invoke({"messages": [("user", "Work.")]})
    assert [(task.status, task.result_summary) for task in plan.list()] == [
        ("pending", ""),
        ("completed", "it is out"),
        ("in_progress", ""),
        ("completed", "second"),
    ]


def test_many_tasks_of_others_fit_in_the_reply(client: Client, box: Toolbox) -> None:
    other = client.conversation("work", actor="bob")
    for task in other.add_many([{"title": f"{number} {'x' * 80}"} for number in range(400)]):
        other.take("bob", task.id)
    state = work(box, write(New="pending"))
    assert state["todos"] and len(other.list()) == 401
    assert "bob works on it.\n" in state["messages"][-2].text


def test_damage_is_reported_once(tmp_path: Path) -> None:
    added = {"type": "TaskAdded", "task": {"id": "1", "title": "Copy"}}
    anyio.run(damaged_log, tmp_path / "data", (3,), added)
    with spawned_daemon(tmp_path) as daemon, connect(socket=daemon.socket, autostart=False) as client:
        agent = start(Toolbox(client, ToolCaller("a", "ann")), script("Read."), checkpointer=InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "1"}}
        for _ in range(2):
            state = agent.invoke({"messages": [("user", "Work.")]}, thread)
    assert ["damaged" in message.text for message in state["messages"]] == [False, True, False, False, False]


def test_rejected_todos_change_nothing(client: Client, box: Toolbox) -> None:
    work(box, write(Copy="pending"))
    state = work(box, write(**{"x" * 5_000: "pending"}))
    message = state["messages"][-2]
    assert message.status == "error" and "content" in message.text
    assert [task.title for task in client.conversation("work").list()] == ["Copy"]


def test_agent_without_a_list_learns_why(client: Client) -> None:
    message = work(Toolbox(client), write(Copy="pending"))["messages"][-2]
    assert message.status == "error" and "punch init" in message.text


async def test_async_agents_write_todos(client: Client, box: Toolbox) -> None:
    state = await start(box, script(write(Copy="pending"))).ainvoke({"messages": [("user", "Work.")]})
    assert contents(state) == {"Copy": "pending"}


def test_long_lists_are_cut_but_kept(client: Client, box: Toolbox) -> None:
    plan = client.conversation("work")
    plan.add_many([{"title": f"{number} {'x' * 180}"} for number in range(100)])
    report = work(box, write(Copy="pending"))["messages"][1].text
    shown = report.count("'content'")
    assert f"\n{100 - shown} more todos are not shown; they stay in the list.\n" in report and len(report) < 20_000
    assert len(plan.list()) == 100 - shown + 1


def test_tool_costs_as_many_tokens_as_langchains(box: Toolbox) -> None:
    turns = [
        write(**{f"Step {number}": "in_progress" if number == done else "pending" for number in range(8)})
        for done in range(4)
    ]
    tokens: list[int] = []
    for middleware in (TodoListMiddleware(), todo_middleware(box)):
        model = ScriptedChat(respond=script(*turns))
        state = create_agent(model, middleware=[middleware]).invoke({"messages": [("user", "Work.")]})
        tools = str([convert_to_openai_tool(tool) for tool in model.tools])
        tokens.append(count_tokens(tools + middleware.system_prompt + "".join(m.text for m in state["messages"])))
    assert tokens[1] <= 1.05 * tokens[0]


class CodexChat(ScriptedChat):
    """A model for which DeepAgents adds LangChain's own todos."""

    model_name: str = "openai:gpt-5.3-codex"


def test_deep_agents_have_one_todo_tool(box: Toolbox) -> None:
    model = CodexChat(respond=script(write(Copy="pending")))
    agent = create_deep_agent(model, middleware=[todo_middleware(box)])
    assert contents(agent.invoke({"messages": [("user", "Work.")]})) == {"Copy": "pending"}
    assert [convert_to_openai_tool(tool)["function"]["name"] for tool in model.tools].count("write_todos") == 1


def test_its_own_prompts_are_used(box: Toolbox) -> None:
    middleware = todo_middleware(box, system_prompt="Plan.", tool_description="Write the plan.")
    assert (middleware.system_prompt, middleware.tools[0].description) == ("Plan.", "Write the plan.")
    assert middleware.name == "TodoListMiddleware"
