"""The parts of a dialect: tools, their arguments as msgspec types, handlers, replies.

A handler is a generator that yields calls to the daemon and receives their results. The blocking and the asyncio
toolbox (`punchlist.tools.toolbox`) run the same handlers.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.errors import ConfirmationRequired
from punchlist.tools.agent_memory import AgentState, Memory
from punchlist.tools.guide import render_guide
from punchlist.tools.snapshot import View
from punchlist_schemas.things import PRIORITIES, STATUSES

HIDDEN = "x-hidden"
Hidden = msgspec.Meta(extra_json_schema={HIDDEN: True})
"""Marks an argument that is accepted but not advertised. Replies mention it when it is useful."""


def advertise_limit(kind: Any) -> msgspec.Meta:
    """Return metadata with the maximum length of a wire type. The daemon enforces the limit."""
    max_length = next(meta.max_length for meta in get_args(kind) if isinstance(meta, msgspec.Meta))
    return msgspec.Meta(extra_json_schema={"maxLength": max_length})


NUMBER = "x-number"
"""Marks text that is advertised as an integer: a task's id. Invalid numbers are reported as not found."""

_CHOICES: tuple[tuple[str, ...], ...] = (
    PRIORITIES,
    (*STATUSES, "deleted"),
    ("pending", "in_progress", "completed", "deleted"),
    ("pending", "in_progress", "completed"),
    ("all", "pending", "completed"),
)


def order_choices(words: Iterable[str]) -> tuple[str, ...]:
    """Return choices in their natural order. msgspec sorts them alphabetically."""
    choices = tuple(words)
    return next((ordered for ordered in _CHOICES if set(ordered) == set(choices)), choices)


CLEARS = "x-clears"
Clearable = Annotated[str | None, msgspec.Meta(extra_json_schema={CLEARS: True})]
"""Text that clears a member if it is empty. None leaves the member unchanged."""

Confirm = Annotated[str, Hidden]
Token = str
Offset = Annotated[int, msgspec.Meta(ge=0), Hidden]


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all tool arguments, named as the model sees them. Empty text and null count as omitted."""


class NoArguments(Arguments, frozen=True):
    """No arguments."""


class Listing(Arguments, frozen=True):
    """No advertised arguments. `offset` is the number of tasks to skip in a list that exceeds one reply."""

    offset: Offset = 0


class Question(msgspec.Struct, frozen=True):
    """A question for the user. To confirm, repeat the call with `confirm=token` before `expires_at` (ms)."""

    text: str
    token: str
    expires_at: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's reply.

    Attributes:
        text: The reply for the model. If the call was rejected, the reason and what to do instead.
        data: The same information as JSON values.
        refused: Whether the tool rejected the call or carried it out only in part.
        question: The question to ask the user first, if the call needs confirmation.
    """

    text: str
    data: Any = None
    refused: bool = False
    question: Question | None = None

    def __str__(self) -> str:
        return self.text


class Problem(Exception):
    """A failed tool call.

    Attributes:
        kind: An error kind of the protocol, or one of the tools' own kinds, such as `invalid_arguments` or
            `unavailable`.
        text: What failed and what the model can do.
        data: Details, as in the protocol.
    """

    def __init__(self, kind: str, text: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.data = data or {}


class ToolContext(msgspec.Struct, frozen=True):
    """The caller and the list of a tool call.

    Attributes:
        calls: Builds calls on the list in the agent's name.
        actor: The agent's name: owner of its claims and actor of its changes.
        user: The user that the connection is limited to.
        memory: State that this process keeps between calls.
        data_dir: The daemon's data directory.
        names: Original names of the offered tools -> names that the model calls.
        log: The epoch of the daemon's log, for positions and fences; empty if the daemon does not respond.
        is_nameless: Whether several agents share this name, so that it can't own a claim.
        answered: Whether the user has answered the question that the call's token belongs to.
        person: Command-line name of the person who uses the tools, as in a chat; empty for an agent.
        view: What this tool call knows about the list.
    """

    calls: ConversationCalls
    actor: str
    user: str | None
    memory: Memory
    data_dir: str
    names: Mapping[str, str] = {}
    log: str = ""
    is_nameless: bool = False
    answered: bool = False
    person: str = ""
    view: View = msgspec.field(default_factory=View)

    @property
    def list_key(self) -> str:
        """Key of the list in memory. A name such as `my:todos` is a different list for each user."""
        return self.conversation if self.user is None else f"{self.user}\0{self.conversation}"

    @property
    def state(self) -> AgentState:
        return self.memory.state_of(self.log, self.list_key, self.actor)

    @property
    def conversation(self) -> str:
        return self.calls.id

    def tool_name(self, name: str) -> str:
        """Return the name under which a tool is offered."""
        return self.names.get(name, name)

    def format_call(self, name: str, arguments: str) -> str:
        """Return a tool call as advice for a reply, or "" if the tool isn't offered."""
        return f"{self.names[name]} {arguments}" if name in self.names else ""


def call_with_consent(
    context: ToolContext,
    call: Callable[..., Call[Any]],
    question: str,
    *,
    confirm: str,
    quote: str = "",
    title: str = "",
) -> Generator[Call[Any], Any, Any]:
    """Make a call that needs the user's consent. Return its result, or the reply with the question.

    Args:
        confirm: The token of an answered question, or "".
        quote: The user's own words, if the user agreed in advance.
        title: The new title to show with the question.
    """
    try:
        return (yield call(ask=True, confirm=confirm or None, answered=context.answered and bool(confirm), quote=quote))
    except ConfirmationRequired as error:
        data: dict[str, Any] = {"status": "confirmation_required", "question": question}
        data |= {"title": title} if title else {}
        data |= {"confirm": error.token, "expires_at": error.expires_at}
        if confirm == error.token:
            end = f"End your turn, and repeat the call once they said yes or have run `punch confirm {error.token}`."
            data["note"] = f"That is no answer yet: ask the user. {end}"
        text = msgspec.json.encode(data).decode()
        form_text = f"{question}\nNew title: {title}" if title else question
        return Reply(text=text, data=data, question=Question(form_text, error.token, error.expires_at))


Steps = Generator[Call[Any], Any, Reply]
"""A running handler: yields calls, receives their results and returns the reply."""

Effect = Literal["reads", "adds", "changes", "advances", "destroys"]
"""Effect of a tool on the list.

`reads` and `changes` are idempotent. Repeating a tool with `adds` adds another task, and repeating one with `advances`
takes the next task. `destroys` may drop tasks.
"""


class Tool(msgspec.Struct, frozen=True):
    """One tool.

    Attributes:
        text: The description. Hosts find tools by search, so its first sentence must contain the likely words.
        output: JSON Schema of the members of the reply's `data`, all optional; empty if the form is not guaranteed.
    """

    name: str
    text: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Steps]
    effect: Effect = "changes"
    output: dict[str, Any] = {}


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of tools for a list.

    Attributes:
        guide: Instructions for the model, as a template of `punchlist.tools.guide`.
        refuse: Converts a problem to the dialect's form.
        names_list: Whether replies name the list if the call did not.
        can_unblock: Whether a tool can remove dependencies.
        offered_names: Original names of the offered tools -> their new names; empty if all keep their names.
    """

    name: str
    summary: str
    guide: str
    tools: tuple[Tool, ...]
    refuse: Callable[[Problem], Reply]
    names_list: bool = True
    can_unblock: bool = False
    offered_names: Mapping[str, str] = {}

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def select_tools(self, names: Mapping[str, str]) -> "Dialect":
        """Return the dialect with only these tools: current name -> the name that the model calls."""
        selected = [tool for tool in self.tools if tool.name in names]
        tools = tuple(msgspec.structs.replace(tool, name=names[tool.name]) for tool in selected)
        offered_names = {own: names[name] for own, name in self.names.items() if name in names}
        return msgspec.structs.replace(self, tools=tools, offered_names=offered_names)

    @property
    def names(self) -> Mapping[str, str]:
        return self.offered_names or {tool.name: tool.name for tool in self.tools}

    @property
    def prompt(self) -> str:
        return render_guide(self.guide, self.names)
