"""Runs tools: finds the tool and the list, parses the arguments, calls the daemon, and formats errors in the dialect.

`Toolbox` blocks, `AsyncToolbox` awaits. Neither raises for errors that a model or a daemon can cause.
"""

import os
import re
from collections.abc import Awaitable, Callable, Generator, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import msgspec

from punchlist.base import project
from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.clients import scope
from punchlist.clients.aio import AsyncClient
from punchlist.errors import NotFound, PunchlistError
from punchlist.tools import claims, notes, registry, turns
from punchlist.tools.agent_memory import Memory
from punchlist.tools.budget import BUDGET, shorten
from punchlist.tools.coercion import list_argument_names, parse_arguments
from punchlist.tools.history import describe_end_by_others
from punchlist.tools.ids import resolve_ids
from punchlist.tools.model import Arguments, Dialect, Problem, Reply, Steps, Tool, ToolContext
from punchlist.tools.refusals import to_problem
from punchlist_schemas import rendezvous
from punchlist_schemas.directory import OUTSIDE
from punchlist_schemas.params import ConversationParams
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.things import Damage

if TYPE_CHECKING:
    from punchlist.clients.sync import Client


class ToolCaller(NamedTuple):
    """The caller of tools, unless the arguments of a call name another caller.

    Attributes:
        conversation: The list; None for the list of the scope or the environment.
        actor: The agent's name: actor of its changes and owner of its claims. Give each agent its own.
        user: The user that the client's connection is limited to.
        directory: The directory whose list is used if no list is named; None for the working directory, "" if it
            is unknown.
        data_dir: The daemon's data directory; None for the one that the environment determines.
        env: The agent's environment variables; None for those of this process.
        agent: Name of a sub-agent of this actor. The arguments of a call may name another sub-agent.
        is_nameless: Whether several agents share the actor. Such a caller claims nothing unless it names a sub-agent.
        answered: Whether the user has answered the question that the call's token belongs to.
        person: Command-line name of the person who uses the tools, as in a chat; empty for an agent. The tools may
            change the tasks that this person works on.
    """

    conversation: str | None = None
    actor: str = "agent"
    user: str | None = None
    directory: str | None = None
    data_dir: str | None = None
    env: Mapping[str, str] | None = None
    agent: str = ""
    is_nameless: bool = False
    answered: bool = False
    person: str = ""

    def find_env(self) -> Mapping[str, str]:
        return os.environ if self.env is None else self.env

    def find_data_dir(self) -> str:
        return self.data_dir or rendezvous.data_dir(self.find_env())


R = TypeVar("R")
_DEFAULT_CALLER = ToolCaller()
_TURNS = "turns"
"""Name of the feature of daemons that add turns to their results."""
_SUB_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_NO_LIST = (
    "there is no task list here: run `punch init` in the project's directory, or set PUNCHLIST_CONVERSATION to its name"
)

_DAMAGED = (
    "this is not the whole list: its log is damaged at position {0.seq} ({0.reason}), and later changes are missing. "
    "It takes no changes now. Tell the user to stop the daemon and run: punch daemon verify --repair"
)


def run_tool(  # noqa: PLR0913 - the parts of a call
    caller: ToolCaller,
    dialect: str | Dialect,
    tool_name: str,
    arguments: object,
    memory: Memory,
    log: str,
    *,
    has_turns: bool = False,
) -> Steps:
    """Run one call of a tool, from the model's arguments to the reply.

    Args:
        log: The epoch of the daemon's log.
        has_turns: Whether the daemon adds turns to its results.
    """
    try:
        dialect = dialect if isinstance(dialect, Dialect) else registry.dialect(dialect)
    except Problem as problem:
        return Reply(text=problem.text, refused=True)
    context: ToolContext | None = None
    tool = dialect.tool(tool_name)
    try:
        if tool is None:
            names = ", ".join(tool.name for tool in dialect.tools)
            raise Problem("unknown_tool", f"there is no tool {tool_name[:60]!r}; available: {names}")
        conversation, is_named = yield from _find_list(caller, dialect)
        parsed = parse_arguments(tool.arguments, arguments)
        context = _build_context(caller, dialect, conversation, parsed, memory, log)
        context.view.has_turns = has_turns
        reply = yield from _run_handler(context, tool, parsed, is_named=is_named)
    except Problem as problem:
        reply = dialect.refuse(problem)
    except PunchlistError as error:
        names = list_argument_names(tool.arguments) if tool else ()
        reply = dialect.refuse(to_problem(error, names, can_unblock=dialect.can_unblock))
    if context is None:
        return reply
    yield from turns.collect_notes(context)
    return notes.add_unread(context, reply)


def _build_context(  # noqa: PLR0913 - the parts of a call
    caller: ToolCaller, dialect: Dialect, conversation: str, arguments: Arguments, memory: Memory, log: str
) -> ToolContext:
    agent = check_sub_agent(getattr(arguments, "agent", "") or caller.agent)
    actor = f"{caller.actor}/{agent}" if agent else caller.actor
    calls, is_nameless = ConversationCalls(conversation, actor), caller.is_nameless and not agent
    return ToolContext(
        calls,
        actor,
        caller.user,
        memory,
        caller.find_data_dir(),
        dialect.names,
        log,
        is_nameless,
        caller.answered,
        caller.person,
    )


def _run_handler(context: ToolContext, tool: Tool, arguments: Arguments, *, is_named: bool) -> Steps:
    damages: list[Damage] = []
    try:
        reply = yield from turns.follow(context, _run_steps(context, tool.run(context, arguments), damages))
    except NotFound as error:
        raise (yield from _explain_not_found(context, error)) from None
    if not is_named and context.memory.record_list(context.log, context.actor, context.conversation):
        reply = _add_to_reply(reply, "conversation", (yield from _get_list_name(context.conversation)))
    return _add_to_reply(reply, "damaged", _DAMAGED.format(damages[0])) if damages else reply


def _run_steps(context: ToolContext, handler: Steps, damages: list[Damage]) -> Steps:
    yield from claims.renew_claims(context)
    if not context.view.has_turns:
        yield from notes.collect_unread(context)
    return (yield from _run_checked(context, handler, damages))


def _get_list_name(conversation: str) -> Generator[Call[Any], Any, str]:
    """Return a list's short name, or its id if it has none or the daemon does not respond."""
    try:
        name: str = yield Call("conversation.get", ConversationParams(conversation=conversation), attrgetter("name"))
    except PunchlistError:
        return conversation
    return name or conversation


def _run_checked(context: ToolContext, handler: Steps, damages: list[Damage]) -> Steps:
    """Run a handler. Resolve the task ids in each of its calls, and reject calls for tasks that others work on.

    Errors are raised in the handler, at its `yield`. Damage reported by the daemon is added to `damages`.
    """
    try:
        call = next(handler)
        while True:
            try:
                call = _record_damage((yield from resolve_ids(context, call)), damages)
                result: Any = yield from claims.make_call(context, call)
            except (Problem, PunchlistError) as error:
                call = handler.throw(error)
            else:
                call = handler.send(result)
    except StopIteration as stop:
        return stop.value


def _record_damage(call: Call[Any], damages: list[Damage]) -> Call[Any]:
    """Make a call add any damage in its result to `damages`."""
    pick = call.pick

    def record_and_pick(result: Any) -> Any:
        if (damage := getattr(result, "damaged", None)) is not None:
            damages.append(damage)
        return pick(result)

    call.pick = record_and_pick
    return call


def check_sub_agent(name: str) -> str:
    """Return a sub-agent's name if it is valid or empty.

    Raises:
        Problem: The name does not consist of 1 to 40 letters, digits and . _ - or does not begin with a letter or
            digit.
    """
    if name and not _SUB_AGENT.fullmatch(name):
        text = "agent must be 1 to 40 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        raise Problem("invalid_arguments", text, {"field": "agent"})
    return name


def _explain_not_found(context: ToolContext, error: NotFound) -> Generator[Call[Any], Any, Problem]:
    """Build the problem for an error. If it is about a task, add who completed or deleted the task."""
    problem = to_problem(error)
    by = (yield from describe_end_by_others(context, error.id)) if error.what == "task" and error.id.isdecimal() else ""
    return Problem(problem.kind, f"{problem.text}: {by}", {**problem.data, "by": by}) if by else problem


def _find_list(caller: ToolCaller, dialect: Dialect) -> Generator[Call[Any], Any, tuple[str, bool]]:
    """Return the conversation, and whether the agent already knows its name, so that the reply need not repeat it.

    For a user, a name in the scope or a project file refers to the user's own list with that name.
    """
    if caller.conversation:
        return caller.conversation, True
    if (scoped := scope.current_conversation()) is not None:
        return project.own(scoped, caller.user), True
    try:
        match = project.of_directory(caller.find_env(), caller.directory)
        if match is None and caller.user is None:
            raise Problem("no_conversation", _NO_LIST)
        name, target = match or (OUTSIDE, None)
        name = project.own(name, caller.user)
        data_dir = caller.find_data_dir()
        if target is not None and not target.is_allowed(data_dir, caller.user):
            info = yield ConversationCalls(name).info()
            if not project.may_be_taken(target, data_dir, info.conversation if info.version else None, caller.user):
                raise project.not_allowed(target)
    except DirectoryError as error:
        raise Problem("no_conversation", f"{error}. {error.advice}") from error
    except OSError as error:
        raise Problem("no_conversation", f"{error.filename}: {error.strerror}") from error
    return name, match is None or not dialect.names_list


def _add_to_reply(reply: Reply, member: str, text: str) -> Reply:
    """Add a member to the reply: the name of the list, or its damage."""
    if isinstance(reply.data, dict):
        data = {**cast("dict[str, Any]", reply.data), member: text}
        if reply.text.startswith("{"):
            return msgspec.structs.replace(reply, text=msgspec.json.encode(data).decode(), data=data)
        reply = msgspec.structs.replace(reply, data=data)
    # A line after a JSON array would make the text invalid JSON. Damage must be reported anyway.
    if reply.text.startswith("[") and member != "damaged":
        return reply
    return msgspec.structs.replace(reply, text=f"{reply.text}\n({member}: {text})")


class Toolbox:
    """Tools over a blocking client.

    Args:
        caller: The agent or user on whose behalf the tools run.
        memory: State to share with other toolboxes for the same log.
    """

    def __init__(self, client: "Client", caller: ToolCaller = _DEFAULT_CALLER, memory: Memory | None = None) -> None:
        self._client = client
        self.caller = caller
        self._memory = memory or Memory()

    def call(self, dialect: str | Dialect, name: str, arguments: object = None) -> Reply:
        """Call a tool with the arguments that the model sent.

        A dialect returned by `offered` is limited to the offered tools.
        """
        log, has_turns = self._open()
        handler = run_tool(self.caller, dialect, name, arguments, self._memory, log, has_turns=has_turns)
        try:
            call = next(handler)
            while True:
                try:
                    result: Any = self._client.run(call)
                except PunchlistError as error:
                    call = handler.throw(error)
                else:
                    call = handler.send(result)
        except StopIteration as stop:
            return _truncate(stop.value)

    def _open(self) -> tuple[str, bool]:
        try:
            hello = self._client.open()
        except PunchlistError:
            return "", False  # the tool's own calls try again and report the error
        return hello.epoch, _TURNS in hello.features


class AsyncToolbox:
    """Tools over an asyncio client. See `Toolbox`."""

    def __init__(self, client: AsyncClient, caller: ToolCaller = _DEFAULT_CALLER, memory: Memory | None = None) -> None:
        self._client = client
        self.caller = caller
        self._memory = memory or Memory()

    async def call(
        self, dialect: str | Dialect, name: str, arguments: object = None, caller: ToolCaller | None = None
    ) -> Reply:
        """See `Toolbox.call`."""
        log, has_turns = await self._open()
        caller = caller or self.caller
        steps = run_tool(caller, dialect, name, arguments, self._memory, log, has_turns=has_turns)
        return _truncate(await drive(steps, self._client.run))

    async def find_list(self, caller: ToolCaller) -> str:
        """Return the list that the tools of a caller use.

        Raises:
            Problem: There is none, or it may not be used.
        """
        return (await drive(_find_list(caller, registry.dialect("native")), self._client.run))[0]

    async def _open(self) -> tuple[str, bool]:
        try:
            hello = await self._client.open()
        except PunchlistError:
            return "", False
        return hello.epoch, _TURNS in hello.features


async def drive(handler: Generator[Call[Any], Any, R], run: Callable[[Call[Any]], Awaitable[Any]]) -> R:
    """Run the calls of a handler until it returns its reply."""
    try:
        call = next(handler)
        while True:
            try:
                result = await run(call)
            except PunchlistError as error:
                call = handler.throw(error)
            else:
                call = handler.send(result)
    except StopIteration as stop:
        return stop.value


def _truncate(reply: Reply) -> Reply:
    """Truncate an oversized reply as a last resort. Dialects truncate earlier, at item boundaries."""
    if len(reply.text) <= BUDGET + 2_000:
        return reply
    return Reply(text=shorten(reply.text, BUDGET), refused=reply.refused)
