"""What a command works with: its arguments, the style of the output, and the daemon once it is needed."""

import json
import os
import pwd
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, overload

from punchlist import __version__
from punchlist.base import project
from punchlist.base.text import safe, safe_block, safe_json, task_id
from punchlist.connection.launch import Target
from punchlist_apps.cli.printing.failure import UnknownList, UsageError
from punchlist_apps.common import wire
from punchlist_apps.common.terminal.style import Style, detect_style, write
from punchlist_schemas.build import build_stamp, is_same_code
from punchlist_schemas.directory import OUTSIDE, Meant
from punchlist_schemas.repository import stem_of

if TYPE_CHECKING:
    from punchlist.clients.sync import Client
    from punchlist.connection.options import Options
    from punchlist_apps.cli.calling.sync_link import Caller


_READS = frozenset(
    ("task.list", "task.get", "task.explain", "conversation.get", "conversation.list", "event.read", "daemon.status")
)
_PAGE = 10_000
_NEAR = 3
_MOST_SPANNED = 1_000


class Context:
    """One run of one command. `args` holds every common option and the command's own."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.style: Style = detect_style(os.environ, now=int(time.time() * 1000))
        self.cut = ""
        """Why what was printed is not a whole list: told at the end."""
        self.target = Target(args.socket, args.data_dir, autostart=False if args.no_autostart else None)
        """Where the daemon is met, and whether one may be started."""
        self.target.report_delays(self.note)
        self._conversation: str | None = None
        self._name: str | None = None
        self._known = False
        self._caller: Caller | None = None
        self._client: Client | None = None

    @property
    def conversation(self) -> str:
        """The list that is meant: the option, PUNCHLIST_CONVERSATION, what the directory means, or `default`.

        Whoever is at the terminal is asked, or told, what there is to say about it.

        Raises:
            DirectoryError: The directory's project file or repository can't be used, or may not name this list.
        """
        if self._conversation is not None:
            return self._conversation
        if self.args.conversation is not None:
            name = str(self.args.conversation)  # also "": a variable that is not set must not mean another list
        else:
            name, meant = project.of_directory(os.environ) or (OUTSIDE, None)
            if meant is not None:
                self._allow(meant)
                self._announce_once(meant)
        self._conversation = name
        return name

    def find_conversation(self) -> str:
        """Return `conversation` without a question or a note; empty if a project file may not name this list."""
        if self.args.conversation is not None:
            return str(self.args.conversation)
        name, meant = project.of_directory(os.environ) or (OUTSIDE, None)
        return name if meant is None or meant.is_allowed(self.target.data_dir) else ""

    @property
    def known(self) -> str:
        """The list that is meant, for what only reads.

        Raises:
            UnknownList: It was named by an option, and there is no such list.
        """
        if self.args.conversation and not self._known:
            self.check_list(self.args.conversation)
            self._known = True
        return self.conversation

    @property
    def name(self) -> str:
        """The name by which people call the list: short where no other list could be meant."""
        if self._name is None:
            found = self.call("conversation.get", conversation=self.conversation)
            self._name = str(found.get("name", self.conversation))
        return self._name

    @property
    def actor(self) -> str:
        """Who does this, as the log records it: the option, PUNCHLIST_ACTOR, or whoever is logged in."""
        return self.args.actor or person(os.environ)

    @property
    def owner(self) -> str:
        """Who claims: the option, PUNCHLIST_OWNER, or the actor."""
        return getattr(self.args, "owner", None) or os.environ.get("PUNCHLIST_OWNER") or self.actor

    @property
    def caller(self) -> "Caller":
        """Makes calls one after the other; connects, and starts a daemon if need be, at the first use.

        A command with a client of its own uses this first: it says within seconds what keeps a daemon from replying.
        """
        if self._caller is None:
            from punchlist_apps.cli.calling.sync_link import Caller

            wire.ensure_mirrors_run(self.target)
            self._caller = Caller(self.target, **self.options)
            # At the first connect a missing daemon is an answer, not an interruption to be waited out.
            hello = self._caller.open()
            if not is_same_code(hello.build, build_stamp(__version__)):
                from punchlist_apps.cli.calling.other_build import met

                met(self._caller, hello, self.target, self.note)
        return self._caller

    @property
    def client(self) -> "Client":
        """The whole library's client, for what a command watches or waits for: it costs the import of asyncio."""
        if self._client is None:
            from punchlist.clients.sync import Client

            _ = self.caller
            self._client = Client(**self.options)
        return self._client

    @property
    def options(self) -> "Options":
        return self.options_of("punch")

    def options_of(self, name: str) -> "Options":
        """Return how a client of this name connects to the daemon."""
        options: Options = {"name": name, "autostart": self.target.autostart}
        return options | self.target.options

    def close(self) -> None:
        if self._caller is not None:
            self._caller.close()
        if self._client is not None:
            self._client.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method; parameters that are None are left out. The result is plain JSON values."""
        return self.send(method, {name: value for name, value in params.items() if value is not None})

    def send(self, method: str, params: dict[str, Any], *, writes: bool = False) -> dict[str, Any]:
        """Call a method with just these parameters. The result is plain JSON values.

        The full client, which costs several times a bare interpreter, is loaded only where the call alone won't do: no
        daemon runs, another build of it, a refusal, or a wait.
        """
        result: dict[str, Any] | None = None
        key = wire.take_key()
        if self._caller is None and key is None and "wait_ms" not in params and (writes or method in _READS):
            result = wire.call(self.target, method, params, writes=writes, same_build=True)
            key = wire.take_key()
        if result is None:
            result = self.caller.call(method, params | ({"key": key} if key else {}))
            wire.completed_calls.append((method, params, result))
        assert result is not None, "a caller returns a result or raises"
        if damaged := result.get("damaged"):
            self.note_cut(damaged["seq"], damaged["reason"])
        return result

    def find_deletion(self, result: dict[str, Any]) -> str:
        """Return who deleted the list of a `task.list` result and when; nothing if it was not deleted."""
        if result["tasks"] or not result["version"] or "damaged" in result:
            return ""
        from punchlist_apps.cli.printing import deletions

        return deletions.find_deletion(
            self.send("event.read", deletions.first_event(self.conversation)), result["version"]
        )

    def note_cut(self, seq: int, reason: str) -> None:
        """What the daemon shows of the list ends at damage: the command says so at its end, and fails."""
        self.cut = (
            f"this list ends at position {seq} ({reason}): the changes after it are missing. `punch daemon verify` "
            "says what is damaged; to repair the log: `punch daemon stop`, then `punch daemon verify --repair`"
        )

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """`call` with the conversation of this run: for what only reads."""
        return self.call(method, conversation=self.known, **params)

    def change(self, method: str, **params: Any) -> dict[str, Any]:
        """`call` with the conversation and the actor of this run: for mutations."""
        params |= {"actor": self.actor, "conversation": self.conversation}
        given = {name: value for name, value in params.items() if value is not None}
        named = self.args.conversation
        may_be_a_slip = bool(named) and sys.stderr.isatty() and not self.find_used(named)
        result = self.send(method, given, writes=True)
        if method == "task.add" and wire.may_have_restarted_list(result):
            from punchlist_apps.cli.printing import deletions

            read = self.send("event.read", deletions.first_event(self.conversation))
            if note := deletions.describe_restart(read, result, self.conversation):
                self.note(note)
        if may_be_a_slip and self.find_used(named):
            self.note(f"new list {safe(named)}")
        return result

    def check_list(self, name: str) -> None:
        """See that somebody has used this list; `default` is always there.

        Raises:
            UnknownList: Nobody has.
        """
        if name == OUTSIDE or self.find_used(name):
            return
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = self.call("conversation.list", limit=_PAGE, cursor=cursor)
            names += [one["conversation"] for one in page["conversations"]]
            cursor = page.get("next_cursor")
            if not cursor:
                from difflib import get_close_matches

                if alike := [one for one in names if stem_of(one) == name]:
                    raise UnknownList(name, alike, is_ambiguous=len(alike) > 1)
                # A repository's list is also known by its directory's name alone.
                known: dict[str, list[str]] = {}
                for one in names:
                    for part in {one.rpartition("-")[0], one}:
                        known.setdefault(part, []).append(one)
                near = [one for part in get_close_matches(name, known, n=_NEAR) for one in known[part]]
                raise UnknownList(name, list(dict.fromkeys(near)))

    def find_used(self, name: str) -> str | None:
        """Return the id of the list that a name leads to; None: nobody used it."""
        found = self.call("conversation.get", conversation=name)["conversation"]
        return str(found["conversation"]) if found["version"] else None

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines for people. What came from others must have been made safe."""
        text = "".join(f"{line}\n" for line in lines)
        if text:
            write(text)

    def json(self, value: Any) -> None:
        write(safe_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)) + "\n")

    def answer(self, value: Any, lines: Iterable[str]) -> int:
        """Print a result as JSON or as lines, as asked for; returns exit code 0."""
        if self.args.json:
            self.json(value)
        else:
            self.lines(lines)
        return 0

    def note(self, text: str) -> None:
        """Tell something beside the output, on standard error, harmless for a terminal."""
        print(safe_block(text), file=sys.stderr)

    @property
    def can_ask(self) -> bool:
        """Whether standard input and output are terminals, so that a person can answer a question."""
        return sys.stdin.isatty() and os.isatty(1)

    def confirmed(self, question: str) -> bool:
        """Whether the person at the terminal agrees. `--yes` counts as yes, and so does `can_ask` being False."""
        if self.args.yes or not self.can_ask:
            return True
        sys.stderr.write(f"{safe(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _allow(self, meant: Meant) -> None:
        data_dir = self.target.data_dir
        if meant.is_allowed(data_dir) or project.may_be_taken(meant, data_dir, self.find_used(meant.conversation)):
            return
        refusal = project.not_allowed(meant)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise refusal
        sys.stderr.write(f"{safe(str(refusal))}.\nWork on it from here? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise refusal
        meant.allow(data_dir)

    def _announce_once(self, meant: Meant) -> None:
        """Once a day and list: nobody has named it, and `default` may be where somebody looks for his tasks."""
        data_dir, name = self.target.data_dir, meant.conversation
        if meant.file is None and not project.was_announced(data_dir, name, time.time()):
            self.note(
                f"punch: using this repository's list, {name}; for the list outside of repositories: -c {OUTSIDE}"
            )
            project.note_announced(data_dir, name)


def person(env: Mapping[str, str]) -> str:
    """The actor of what is typed here: PUNCHLIST_ACTOR, or whoever is logged in."""
    if named := env.get("PUNCHLIST_ACTOR") or env.get("USER") or env.get("LOGNAME"):
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name  # cron, services and containers set no variables
    except KeyError:
        return "punch"  # a container's user need not have a name


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def ids(texts: Iterable[str] | None) -> list[str] | None:
    """Tasks as people write them (`3`, `#3`, `1,2`, `3-7`), as the wire wants them; None when none were given.

    Raises:
        UsageError: A text names no task: a variable that is not set must not mean "nothing to do".
    """
    return [one for text in texts or () for part in text.rstrip(", ").split(",") for one in _span(part)] or None


def _span(text: str) -> list[str]:
    """The tasks of `3-7`, or the one that is named."""
    first, dash, last = (part.strip().removeprefix("#") for part in text.partition("-"))
    if not (dash and first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
        return [one_id(text)]
    if not 0 <= int(last[:9]) - int(first[:9]) < _MOST_SPANNED:
        raise UsageError(f"{text!r} is not a range: write 3-7, of at most {_MOST_SPANNED:,} tasks")
    return [str(number) for number in range(int(first), int(last) + 1)]


if TYPE_CHECKING:

    @overload
    def one_id(text: str) -> str: ...
    @overload
    def one_id(text: str | None) -> str | None: ...


def one_id(text: str | None) -> str | None:
    """A task as people write it; None when none was given."""
    if text is None:
        return None
    if not (found := task_id(text.strip())):
        raise UsageError(f"{text!r} is not a task id: write 3 or #3")
    return found


def loose_value(text: str) -> Any:
    """A value given on the command line: JSON, or else the word itself."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
