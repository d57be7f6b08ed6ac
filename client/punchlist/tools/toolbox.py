"""Runs tools: finds them, takes their arguments for what was meant, asks the daemon, wears refusals in their dialect.

`Toolbox` blocks, `AsyncToolbox` awaits. Neither raises for anything that a model or a daemon can cause.
"""

import os
import re
from collections.abc import Awaitable, Callable, Generator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from punchlist.base import project
from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.clients import scope
from punchlist.clients.aio import AsyncClient
from punchlist.errors import NotFound, PunchlistError
from punchlist.tools import claims, notes, registry
from punchlist.tools.agent_memory import Memory
from punchlist.tools.budget import BUDGET, shorten
from punchlist.tools.coercion import argument_names, arguments_of
from punchlist.tools.history import ended_by_others
from punchlist.tools.ids import resolved
from punchlist.tools.model import Arguments, Dialect, Problem, Reply, Steps, Tool, ToolContext
from punchlist.tools.refusals import problem_of
from punchlist_schemas import rendezvous
from punchlist_schemas.directory import OUTSIDE
from punchlist_schemas.params import ConversationParams
from punchlist_schemas.project_file import DirectoryError
from punchlist_schemas.things import Damage

if TYPE_CHECKING:
    from punchlist.clients.sync import Client


class ToolCaller(NamedTuple):
    """For whom tools run, where a call does not say otherwise.

    Attributes:
        conversation: The list; None for the scope's or the environment's.
        actor: The agent's name: the actor of its changes and the owner of its claims. Give each agent its own.
        user: The user that the client's connection is confined to.
        directory: Where the list is looked for if nothing names one; None: the working directory.
        data_dir: The daemon's data directory; None: as the environment says.
        agent: The name of a sub-agent of this actor, where the call's arguments do not give one.
        is_nameless: Whether several agents share the actor. Such a caller claims nothing unless a sub-agent is named.
        answered: Whether the person themselves has answered the question that the call's token is from.
        person: The name at the command line of the person who speaks through the tools, as in a chat; for an agent
            empty. What this person works on is the tools' to change.
    """

    conversation: str | None = None
    actor: str = "agent"
    user: str | None = None
    directory: str | None = None
    data_dir: str | None = None
    agent: str = ""
    is_nameless: bool = False
    answered: bool = False
    person: str = ""


NOBODY = ToolCaller()
_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")

_NO_LIST = (
    "there is no task list here: run `punch init` in the project's directory, or set PUNCHLIST_CONVERSATION to its name"
)

_CUT = (
    "this is not the whole list: its log is damaged at position {0.seq} ({0.reason}), and later changes are missing. "
    "It takes no changes now. Tell the user to stop the daemon and run: punch daemon verify --repair"
)


def steps(  # noqa: PLR0913 - what a call is made of
    caller: ToolCaller, named: str | Dialect, tool_name: str, arguments: object, memory: Memory, log: str
) -> Steps:
    """One call of one tool, from what the model sent to the reply, as a generator of calls to the daemon.

    `log` is the epoch of the daemon's log.
    """
    try:
        dialect = named if isinstance(named, Dialect) else registry.dialect(named)
    except Problem as problem:
        return Reply(text=problem.text, refused=True)
    context: ToolContext | None = None
    tool = dialect.tool(tool_name)
    try:
        if tool is None:
            there = ", ".join(tool.name for tool in dialect.tools)
            raise Problem("unknown_tool", f"there is no tool {tool_name[:60]!r}; there are: {there}")
        conversation, is_told = yield from _place(caller, dialect)
        prepared = arguments_of(tool.arguments, arguments)
        context = _context(caller, dialect, conversation, prepared, memory, log)
        reply = yield from _replied(context, tool, prepared, is_told=is_told)
    except Problem as problem:
        reply = dialect.refuse(problem)
    except PunchlistError as error:
        names = argument_names(tool.arguments) if tool else ()
        reply = dialect.refuse(problem_of(error, names, unblocks=dialect.unblocks))
    return reply if context is None else notes.with_unread(context, reply)


def _context(  # noqa: PLR0913 - as above
    caller: ToolCaller, dialect: Dialect, conversation: str, prepared: Arguments, memory: Memory, log: str
) -> ToolContext:
    agent = sub_agent(getattr(prepared, "agent", "") or caller.agent)
    actor = f"{caller.actor}/{agent}" if agent else caller.actor
    calls, is_nameless = ConversationCalls(conversation, actor), caller.is_nameless and not agent
    return ToolContext(
        calls, actor, caller.user, memory, dialect.names, log, is_nameless, caller.answered, caller.person
    )


def _replied(context: ToolContext, tool: Tool, prepared: Arguments, *, is_told: bool) -> Steps:
    cuts: list[Damage] = []
    try:
        yield from claims.renew(context)
        yield from notes.look(context)
        reply = yield from _checking(context, tool.run(context, prepared), cuts)
    except NotFound as error:
        raise (yield from _gone(context, error)) from None
    if not is_told and context.memory.is_other_list(context.log, context.actor, context.conversation):
        reply = _telling(reply, "conversation", (yield from _name_of(context.conversation)))
    return _telling(reply, "damaged", _CUT.format(cuts[0])) if cuts else reply


def _name_of(conversation: str) -> Generator[Call[Any], Any, str]:
    """Return the name by which people call a list; its id if the daemon does not answer any more."""
    try:
        name: str = yield Call("conversation.get", ConversationParams(conversation=conversation), attrgetter("name"))
    except PunchlistError:
        return conversation
    return name or conversation


def _checking(context: ToolContext, handler: Steps, cuts: list[Damage]) -> Steps:
    """Runs a handler; each of its calls has the list's own ids and takes nothing that another works on.

    What speaks against a call is raised where the handler makes it; where an answer ends at damage goes to `cuts`.
    """
    try:
        call = next(handler)
        while True:
            try:
                call = yield from resolved(context, call)
                yield from claims.check(context, call)
                result: Any = yield _noting(call, cuts)
            except (Problem, PunchlistError) as error:
                call = handler.throw(error)
            else:
                call = handler.send(result)
    except StopIteration as stop:
        return stop.value


def _noting(call: Call[Any], cuts: list[Damage]) -> Call[Any]:
    pick = call.pick

    def noted(result: Any) -> Any:
        if (damaged := getattr(result, "damaged", None)) is not None:
            cuts.append(damaged)
        return pick(result)

    call.pick = noted
    return call


def sub_agent(name: str) -> str:
    """A sub-agent's name as it was given, or empty.

    Raises:
        Problem: It is not 1 to 40 letters, digits and . _ - beginning with a letter or digit.
    """
    if name and not _AGENT.fullmatch(name):
        text = "agent must be 1 to 40 of A-Z a-z 0-9 . _ - and begin with a letter or digit"
        raise Problem("invalid_arguments", text, {"field": "agent"})
    return name


def _gone(context: ToolContext, error: NotFound) -> Generator[Call[Any], Any, Problem]:
    """What is not found, and who has ended it if it was a task."""
    problem = problem_of(error)
    by = (yield from ended_by_others(context, error.id)) if error.what == "task" and error.id.isdecimal() else ""
    return Problem(problem.kind, f"{problem.text}: {by}", {**problem.data, "by": by}) if by else problem


def _place(caller: ToolCaller, dialect: Dialect) -> Generator[Call[Any], Any, tuple[str, bool]]:
    """The conversation, and whether the reply need not name it: for a user the own one of what the place means."""
    if caller.conversation:
        return caller.conversation, True
    if (around := scope.current_conversation()) is not None:
        return project.own(around, caller.user), True
    try:
        found = project.of_directory(os.environ, caller.directory)
        if found is None and caller.user is None:
            raise Problem("no_conversation", _NO_LIST)
        name, meant = found or (OUTSIDE, None)
        name = project.own(name, caller.user)
        data_dir = caller.data_dir or rendezvous.data_dir(os.environ)
        if meant is not None and not meant.is_allowed(data_dir, caller.user):
            there = yield ConversationCalls(name).info()
            if not project.may_be_taken(meant, data_dir, there.conversation if there.version else None, caller.user):
                raise project.not_allowed(meant)
    except DirectoryError as error:
        raise Problem("no_conversation", f"{error}. {error.advice}") from error
    except OSError as error:
        raise Problem("no_conversation", f"{error.filename}: {error.strerror}") from error
    return name, found is None or not dialect.tells_list


def _telling(reply: Reply, member: str, said: str) -> Reply:
    """The reply with what else has to be said: the conversation that was fallen back to, or where its list ends."""
    if isinstance(reply.data, dict):
        data = {**cast("dict[str, Any]", reply.data), member: said}
        if reply.text.startswith("{"):
            return msgspec.structs.replace(reply, text=msgspec.json.encode(data).decode(), data=data)
        reply = msgspec.structs.replace(reply, data=data)
    if reply.text.startswith("[") and member != "damaged":
        return reply
    return msgspec.structs.replace(reply, text=f"{reply.text}\n({member}: {said})")


class Toolbox:
    """Tools over a blocking client.

    Args:
        caller: The agent or user on whose behalf the tools run.
        memory: What other toolboxes of the same log remember, to be shared.
    """

    def __init__(self, client: "Client", caller: ToolCaller = NOBODY, memory: Memory | None = None) -> None:
        self._client = client
        self.caller = caller
        self._memory = memory or Memory()

    def call(self, dialect: str | Dialect, name: str, arguments: object = None) -> Reply:
        """Call a tool with the arguments that the model sent.

        A dialect returned by `offered` is limited to the offered tools.
        """
        running = steps(self.caller, dialect, name, arguments, self._memory, self._log())
        try:
            call = next(running)
            while True:
                try:
                    result: Any = self._client.run(call)
                except PunchlistError as error:
                    call = running.throw(error)
                else:
                    call = running.send(result)
        except StopIteration as stop:
            return _bounded(stop.value)

    def _log(self) -> str:
        try:
            return self._client.open().epoch
        except PunchlistError:
            return ""  # the call itself tries again and says what is wrong


class AsyncToolbox:
    """Tools over an asyncio client. See `Toolbox`."""

    def __init__(self, client: AsyncClient, caller: ToolCaller = NOBODY, memory: Memory | None = None) -> None:
        self._client = client
        self.caller = caller
        self._memory = memory or Memory()

    async def call(
        self, dialect: str | Dialect, name: str, arguments: object = None, caller: ToolCaller | None = None
    ) -> Reply:
        """See `Toolbox.call`."""
        log = await self._log()
        return _bounded(
            await drive(steps(caller or self.caller, dialect, name, arguments, self._memory, log), self._client.run)
        )

    async def _log(self) -> str:
        try:
            return (await self._client.open()).epoch
        except PunchlistError:
            return ""


async def drive(running: Steps, run: Callable[[Call[Any]], Awaitable[Any]]) -> Reply:
    """Make the calls of a tool's steps until its reply is there."""
    try:
        call = next(running)
        while True:
            try:
                result = await run(call)
            except PunchlistError as error:
                call = running.throw(error)
            else:
                call = running.send(result)
    except StopIteration as stop:
        return stop.value


def _bounded(reply: Reply) -> Reply:
    """Truncate an oversized reply as a last resort. Dialects truncate earlier, at item boundaries."""
    if len(reply.text) <= BUDGET + 2_000:
        return reply
    return Reply(text=shorten(reply.text, BUDGET), refused=reply.refused)
