"""What a dialect is made of: tools with their arguments as msgspec types, handlers that ask the daemon, replies.

A handler is a generator: it yields the calls it wants made and is sent their results. So it is written once, and the
blocking and the asyncio face both run it (`punchlist.tools.toolbox`).
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

import msgspec

from punchlist.calls.call import Call
from punchlist.calls.conversations import ConversationCalls
from punchlist.errors import ConfirmationRequired
from punchlist.tools.agent_memory import AgentState, Memory
from punchlist.tools.guide import rendered
from punchlist_schemas.things import PRIORITIES, STATUSES

HIDDEN = "x-hidden"
Hidden = msgspec.Meta(extra_json_schema={HIDDEN: True})
"""Marks an argument that works but is not advertised: a reply tells of it when it is of use."""


def limited(kind: Any) -> msgspec.Meta:
    """Advertises how long a text of this kind of the wire may be; the daemon enforces it."""
    most = next(one.max_length for one in get_args(kind) if isinstance(one, msgspec.Meta))
    return msgspec.Meta(extra_json_schema={"maxLength": most})


NUMBER = "x-number"
"""Marks a text that is advertised as an integer: a task's id, so that what is no number is just not found."""

_CHOICES: tuple[tuple[str, ...], ...] = (
    PRIORITIES,
    (*STATUSES, "deleted"),
    ("pending", "in_progress", "completed", "deleted"),
    ("pending", "in_progress", "completed"),
    ("all", "pending", "completed"),
)


def choices(words: Iterable[str]) -> tuple[str, ...]:
    """Choices in the order in which people say them; msgspec sorts them."""
    found = tuple(words)
    return next((known for known in _CHOICES if set(known) == set(found)), found)


CLEARS = "x-clears"
Clearable = Annotated[str | None, msgspec.Meta(extra_json_schema={CLEARS: True})]
"""A text whose empty value is sent, since it clears a member; None is omitted."""

Confirm = Annotated[str, Hidden]
Token = str
Offset = Annotated[int, msgspec.Meta(ge=0), Hidden]


class Arguments(msgspec.Struct, frozen=True, kw_only=True):
    """Base of every tool's arguments, as the model names them. An empty text or null counts as not given."""


class Nothing(Arguments, frozen=True):
    """No arguments."""


class Listing(Arguments, frozen=True):
    """No arguments that are advertised: `offset` skips so many tasks of a list that is too long for one reply."""

    offset: Offset = 0


class Question(msgspec.Struct, frozen=True):
    """What the user has to agree to. To confirm, repeat the call with `confirm=token` before `expires_at` (ms)."""

    text: str
    token: str
    expires_at: int


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool answers: `text` for the model, `data` the same as plain JSON values.

    `refused` tells that the tool did not do what it was asked for; `text` then says why and what would work.
    """

    text: str
    data: Any = None
    refused: bool = False
    question: Question | None = None

    def __str__(self) -> str:
        return self.text


class Problem(Exception):
    """A tool call failed; the message says what the model can do.

    Attributes:
        kind: A kind of the wire contract, or `invalid_arguments`, `no_conversation`, `unavailable`.
        text: The sentence.
        data: The facts.
    """

    def __init__(self, kind: str, text: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.data = data or {}


class ToolContext(msgspec.Struct, frozen=True):
    """What a handler works with: who calls, on which list.

    Attributes:
        calls: What can be asked of the list, in the agent's name.
        actor: The agent's name: the owner of its claims and the actor of its changes.
        user: The user that the connection is confined to.
        memory: What this process remembers.
        names: Own names of the tools that are offered → the names that the model calls.
        log: The epoch of the daemon's log, which positions and fences refer to; empty while no daemon answers.
        is_nameless: Whether several agents call by this name, so that it can't own a claim.
        answered: Whether the person has answered the question that the call's token is from.
        person: Who speaks through the tools, by their name at the command line; for an agent empty.
    """

    calls: ConversationCalls
    actor: str
    user: str | None
    memory: Memory
    names: Mapping[str, str] = {}
    log: str = ""
    is_nameless: bool = False
    answered: bool = False
    person: str = ""

    @property
    def place(self) -> str:
        """What the process remembers the list by: names like `my:todos` mean another list for each user."""
        return self.conversation if self.user is None else f"{self.user}\0{self.conversation}"

    @property
    def mind(self) -> AgentState:
        return self.memory.mind(self.log, self.place, self.actor)

    @property
    def conversation(self) -> str:
        return self.calls.id

    def tool(self, name: str) -> str:
        return self.names.get(name, name)

    def call_of(self, name: str, arguments: str) -> str:
        """Return a tool call as advice in a reply; empty if the tool isn't offered."""
        return f"{self.names[name]} {arguments}" if name in self.names else ""


def confirmed(
    context: ToolContext,
    call: Callable[..., Call[Any]],
    question: str,
    *,
    confirm: str,
    quote: str = "",
    title: str = "",
) -> Generator[Call[Any], Any, Any]:
    """Make a call that the person has to agree to; its result, or the reply that puts the question.

    Args:
        confirm: The token of an answered question, or nothing.
        quote: The person's own words by which they agreed beforehand, or nothing.
        title: The new title that the question is about, told beside it.
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
        shown = f"{question}\nNew title: {title}" if title else question
        return Reply(text=text, data=data, question=Question(shown, error.token, error.expires_at))


Steps = Generator[Call[Any], Any, Reply]
"""A handler at work."""

Effect = Literal["reads", "adds", "changes", "advances", "destroys"]
"""What a tool does to the list: nothing, only additions, changes that a repetition does not add to, a step of work that
a repetition goes beyond, or destruction."""


class Tool(msgspec.Struct, frozen=True):
    """One tool. The first sentence of `text` must find it: hosts load definitions by search.

    `output` are the members of its reply's `data`, as JSON Schema; each may be missing. Empty where it is not promised.
    """

    name: str
    text: str
    arguments: type[Arguments]
    run: Callable[[ToolContext, Any], Steps]
    effect: Effect = "changes"
    output: dict[str, Any] = {}


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """A named set of tools over a list.

    `guide` is what a model is told, in the form of `punchlist.tools.guide`. `refuse` puts a problem into the dialect's
    own form. `tells_list` tells whether replies say which list was meant where the call did not name one. `unblocks`
    tells whether it can take an edge away. `renamed` holds the tools that are offered under names of their own.
    """

    name: str
    summary: str
    guide: str
    tools: tuple[Tool, ...]
    refuse: Callable[[Problem], Reply]
    tells_list: bool = True
    unblocks: bool = False
    renamed: Mapping[str, str] = {}

    def tool(self, name: str) -> Tool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    def offering(self, names: Mapping[str, str]) -> "Dialect":
        """The same dialect with these tools alone: present name → the name that the model calls."""
        kept = [tool for tool in self.tools if tool.name in names]
        tools = tuple(msgspec.structs.replace(tool, name=names[tool.name]) for tool in kept)
        renamed = {own: names[shown] for own, shown in self.names.items() if shown in names}
        return msgspec.structs.replace(self, tools=tools, renamed=renamed)

    @property
    def names(self) -> Mapping[str, str]:
        return self.renamed or {tool.name: tool.name for tool in self.tools}

    @property
    def prompt(self) -> str:
        return rendered(self.guide, self.names)
