"""LangChain's todo list, stored as a list of punchlist.

The middleware has LangChain's own tool, `write_todos`, with its schema and its prompts. A todo is identified by its
content, so a task keeps its id, notes and status when the model writes the todos again. The agent's state contains the
todos that the model has seen. Before each call of the model, a message reports the list if it differs from these.
"""

from importlib import import_module
from typing import Any, Literal

from punchlist.base.text import one_line
from punchlist.calls.cursor import TaskList
from punchlist.tools.budget import fit
from punchlist.tools.dialects.claude import TodoWrite
from punchlist.tools.model import Arguments, Dialect, Problem, Reply, Steps, Tool, ToolContext
from punchlist.tools.replacing import replace_and_claim
from punchlist.tools.toolbox import Toolbox
from punchlist_schemas.params import NewTask
from punchlist_schemas.things import Task

_BUDGET = 16_000
"""Maximum length of the todos in a reply, and of the sentences about them, in characters."""


def import_framework(module: str, package: str) -> Any:
    """Import a module of an agent framework.

    Raises:
        ImportError: The framework is not installed.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ImportError(f"{package} is not installed; run: pip install {package}") from error


def todo_middleware(box: Toolbox, **options: Any) -> Any:
    """Return a `TodoListMiddleware` of LangChain whose todos are the list of `box`.

    It replaces `TodoListMiddleware()` in LangChain, LangGraph and DeepAgents.

    Args:
        options: Options of `TodoListMiddleware`: `system_prompt`, `tool_description`.

    Raises:
        ImportError: `langchain` is not installed.
    """
    base: Any = import_framework("langchain.agents.middleware", "langchain").TodoListMiddleware
    messages = import_module("langchain_core.messages")
    command = import_module("langgraph.types").Command
    structured_tool = import_module("langchain_core.tools").StructuredTool

    def write_todos(runtime: Any, todos: list[dict[str, str]]) -> Any:
        seen = runtime.state.get("todos", [])
        reply = box.call(_DIALECT, "write_todos", {"todos": todos, "seen": seen})
        message = messages.ToolMessage(reply.text, tool_call_id=runtime.tool_call_id)
        if reply.refused:
            message.status = "error"
            return command(update={"messages": [message]})
        return command(update={"todos": reply.data["todos"], "messages": [message]})

    # LangChain passes the runtime to the argument with this annotation.
    write_todos.__annotations__["runtime"] = import_module("langchain.tools").ToolRuntime

    # If DeepAgents has added LangChain's own middleware, this one replaces it because it has the same name.
    class TodoListMiddleware(base):
        def before_model(self, state: Any, runtime: Any) -> Any:  # noqa: ARG002 - LangChain's signature
            reply = box.call(_DIALECT, "report")
            if reply.refused:
                return None  # The next write_todos reports the error to the model.
            damage = reply.data.get("damaged", "")
            is_known = not damage or any(damage in message.text for message in state["messages"])
            if is_known and reply.data["todos"] == state.get("todos", []):
                return None
            return {"todos": reply.data["todos"], "messages": [messages.HumanMessage(reply.text)]}

    middleware: Any = TodoListMiddleware(**options)
    (tool,) = middleware.tools
    middleware.tools = [
        structured_tool.from_function(
            write_todos,
            name=tool.name,
            description=tool.description,
            args_schema=tool.args_schema,
            infer_schema=False,
        )
    ]
    return middleware


class _Todo(Arguments, frozen=True):
    content: str
    status: Literal["pending", "in_progress", "completed"]


class _WriteTodos(TodoWrite, frozen=True):
    """Arguments of write_todos. `seen` are the todos that the model has seen."""

    seen: tuple[_Todo, ...] = ()


def _write(context: ToolContext, args: _WriteTodos) -> Steps:
    todos = [NewTask(title=one_line(todo.content), status=todo.status) for todo in args.todos]
    seen = [NewTask(title=todo.content, status=todo.status) for todo in args.seen]
    _, tasks, kept = yield from replace_and_claim(context, todos, seen=seen)
    sentences, left_out = fit(kept.values(), "{}.".format, budget=_BUDGET)
    more = [f"{left_out} more todos stay."] if left_out else []
    return _build_reply("Updated todo list to", tasks, [*sentences, *more])


def _report(context: ToolContext, _args: Arguments) -> Steps:
    tasks: TaskList = yield context.calls.list()
    return _build_reply("The todo list is shared and is now", tasks, ["write_todos drops the todos it leaves out."])


def _build_reply(first: str, tasks: TaskList, lines: list[str]) -> Reply:
    shown, left_out = fit(tasks, _build_todo, budget=_BUDGET)
    more = [f"{left_out} more todos are not shown; they stay in the list."] if left_out else []
    # LangChain's todos have no other statuses.
    open_as = {"paused": "pending", "failed": "pending"}
    todos = [{**todo, "status": open_as.get(todo["status"], todo["status"])} for todo in shown]
    return Reply(text="\n".join([f"{first} {shown}", *more, *lines]), data={"todos": todos})


def _build_todo(task: Task) -> dict[str, str]:
    return {"content": task.title, "status": task.status}


def _refuse(problem: Problem) -> Reply:
    return Reply(text=problem.text, refused=True)


_DIALECT = Dialect(
    name="write_todos",
    summary="",
    guide="",
    tools=(Tool("write_todos", "", _WriteTodos, _write, "destroys"), Tool("report", "", Arguments, _report, "reads")),
    refuse=_refuse,
    names_list=False,
)
