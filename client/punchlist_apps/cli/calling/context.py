"""The context of one command: its arguments, the style of its output, and the connection to the daemon."""

import json
import os
import pwd
import sys
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from punchlist import __version__
from punchlist.base import project
from punchlist.base.text import safe, safe_block, safe_json, task_id
from punchlist.connection.launch import HOOK_CHECK_AFTER_S, Target
from punchlist.errors import PunchlistError
from punchlist_apps.cli.calling.sync_link import Caller
from punchlist_apps.cli.printing import deletions, stored
from punchlist_apps.cli.printing.failure import UnknownList, UsageError
from punchlist_apps.common import autostart
from punchlist_apps.common.terminal.style import Style, detect_style, write
from punchlist_schemas.build import build_stamp, is_same_code
from punchlist_schemas.directory import OUTSIDE, DirectoryList
from punchlist_schemas.repository import stem_of

if TYPE_CHECKING:
    from punchlist.clients.sync import Client
    from punchlist.connection.options import Options

_PAGE = 10_000
_MAX_SUGGESTIONS = 3
_MAX_RANGE = 1_000


class Context:
    """One run of one command. `args` holds the common options and the command's own arguments."""

    def __init__(self, args: Namespace) -> None:
        self.args = args
        self.style: Style = detect_style(os.environ, now=int(time.time() * 1000))
        self.truncation = ""
        """Why the printed list is incomplete. Reported when the command ends."""
        self.target = Target(args.socket, args.data_dir, autostart=False if args.no_autostart else None)
        """The daemon's address, and whether a missing daemon may be started."""
        self.target.report_delays(self.note)
        self._conversation: str | None = None
        self._name: str | None = None
        self._is_checked = False
        self._caller: Caller | None = None
        self._client: Client | None = None

    @property
    def conversation(self) -> str:
        """The id of the list: from the option, PUNCHLIST_CONVERSATION, the directory, or `default`.

        The first access may print a note, or ask the person whether to trust the project file that names this list.

        Raises:
            DirectoryError: The directory's project file or repository can't be used, or isn't trusted to name this
                list.
        """
        if self._conversation is not None:
            return self._conversation
        if self.args.conversation is not None:
            name = str(self.args.conversation)  # even if empty: an unset shell variable must not select another list
        else:
            name, meant = project.of_directory(os.environ) or (OUTSIDE, None)
            if meant is not None:
                self._check_allowed(meant)
                self._announce_repository(meant)
        self._conversation = name
        return name

    def find_conversation(self) -> str:
        """Return `conversation` without asking or printing; empty if the project file isn't trusted to name it."""
        if self.args.conversation is not None:
            return str(self.args.conversation)
        name, meant = project.of_directory(os.environ) or (OUTSIDE, None)
        return name if meant is None or meant.is_allowed(self.target.data_dir) else ""

    @property
    def existing_conversation(self) -> str:
        """The id of the list, for commands that only read.

        Raises:
            UnknownList: The option names a list that doesn't exist.
        """
        if self.args.conversation and not self._is_checked:
            self.check_list(self.args.conversation)
            self._is_checked = True
        return self.conversation

    @property
    def name(self) -> str:
        """The display name of the list: short if it is unambiguous."""
        if self._name is None:
            result = self.call("conversation.get", conversation=self.conversation)
            self._name = str(result.get("name", self.conversation))
        return self._name

    @property
    def actor(self) -> str:
        """The actor that the log records: the option, PUNCHLIST_ACTOR, or the user who is logged in."""
        return self.args.actor or default_actor(os.environ)

    @property
    def owner(self) -> str:
        """The owner of claimed tasks: the option, PUNCHLIST_OWNER, or the actor."""
        return getattr(self.args, "owner", None) or os.environ.get("PUNCHLIST_OWNER") or self.actor

    @property
    def caller(self) -> Caller:
        """The connection for single calls. The first access connects, and starts a daemon if necessary.

        Commands that use `client` access this first, because it reports within seconds why a daemon doesn't reply.
        """
        if self._caller is None:
            autostart.ensure_mirrors_run(self.target)
            self._caller = Caller(self.target, **self.options)
            # Connect now: `open` reports a missing daemon immediately, whereas a call would retry until its deadline.
            hello = self._caller.open()
            if not is_same_code(hello.build, build_stamp(__version__)):
                from punchlist_apps.cli.calling.other_build import handle_other_build

                handle_other_build(self._caller, hello, self.target, self.note)
        return self._caller

    @property
    def client(self) -> "Client":
        """The library's client, for watches and waits. Accessing it imports asyncio, which takes time."""
        if self._client is None:
            from punchlist.clients.sync import Client

            _ = self.caller
            self._client = Client(**self.options)
        return self._client

    @property
    def options(self) -> "Options":
        return self.options_of("punch")

    def options_of(self, name: str) -> "Options":
        """Return the connection options for a client with this name."""
        options: Options = {"name": name, "autostart": self.target.autostart}
        return options | self.target.options

    def close(self) -> None:
        if self._caller is not None:
            self._caller.close()
        if self._client is not None:
            self._client.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method, leaving out parameters that are None, and return plain JSON values."""
        return self.send(method, {name: value for name, value in params.items() if value is not None})

    def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Call a method with exactly these parameters, and return plain JSON values."""
        result: dict[str, Any] = self.caller.call(method, params)
        stored.record_call(method, params, result)
        if damage := result.get("damaged"):
            self.note_truncation(damage["seq"], damage["reason"])
        return result

    def peek(self, method: str, params: dict[str, Any], timeout_s: float = HOOK_CHECK_AFTER_S) -> dict[str, Any] | None:
        """Return the result of a call to a running daemon; None if it fails or takes longer than a prompt can wait."""
        try:
            with Caller(self.target.with_autostart(False), name="punch", timeout_s=timeout_s) as caller:
                caller.open()  # a call would wait for a missing daemon
                return caller.call(method, params)
        except PunchlistError:
            return None

    def find_deletion(self, result: dict[str, Any]) -> str:
        """Return who deleted the list in a `task.list` result and when; empty if the list wasn't deleted."""
        if result["tasks"] or not result["version"] or "damaged" in result:
            return ""
        return deletions.find_deletion(
            self.send("event.read", deletions.build_first_event_params(self.conversation)), result["version"]
        )

    def note_truncation(self, seq: int, reason: str) -> None:
        """Record that the log is damaged and that the list is shown only up to the damage.

        The command ends with this error.
        """
        self.truncation = (
            f"the list is incomplete: changes after position {seq} are missing ({reason}); see the damage: "
            "punch daemon verify; repair the log: punch daemon stop, then punch daemon verify --repair"
        )

    def read(self, method: str, **params: Any) -> dict[str, Any]:
        """Make a read-only call for this command's list."""
        return self.call(method, conversation=self.existing_conversation, **params)

    def change(self, method: str, **params: Any) -> dict[str, Any]:
        """Make a call that changes something, with this command's list and actor."""
        params |= {"actor": self.actor, "conversation": self.conversation}
        members = {name: value for name, value in params.items() if value is not None}
        named = self.args.conversation
        # The person may have mistyped the list's name, so report it if the change creates a list.
        may_be_new = bool(named) and sys.stderr.isatty() and not self.find_list_id(named)
        result = self.send(method, members)
        if method == "task.add" and deletions.may_have_restarted(result):
            page = self.send("event.read", deletions.build_first_event_params(self.conversation))
            if note := deletions.describe_restart(page, result, self.conversation):
                self.note(note)
        if may_be_new and self.find_list_id(named):
            self.note(f"new list {safe(named)}")
        return result

    def check_list(self, name: str) -> None:
        """Check that this list has been used. `default` always passes.

        Raises:
            UnknownList: The list has not been used.
        """
        if name == OUTSIDE or self.find_list_id(name):
            return
        lists = [row["conversation"] for page in self.list_pages() for row in page["conversations"]]
        from difflib import get_close_matches

        if matches := [list_ for list_ in lists if stem_of(list_) == name]:
            raise UnknownList(name, matches, is_ambiguous=len(matches) > 1)
        # A repository's list can also be named by its directory's name alone.
        by_name: dict[str, list[str]] = {}
        for list_ in lists:
            for part in {list_.rpartition("-")[0], list_}:
                by_name.setdefault(part, []).append(list_)
        near = [list_ for part in get_close_matches(name, by_name, n=_MAX_SUGGESTIONS) for list_ in by_name[part]]
        raise UnknownList(name, list(dict.fromkeys(near)))

    def list_pages(self, **params: Any) -> Iterator[dict[str, Any]]:
        """Yield the pages of `conversation.list`."""
        cursor: str | None = None
        while True:
            page = self.call("conversation.list", limit=_PAGE, cursor=cursor, **params)
            yield page
            cursor = page.get("next_cursor")
            if not cursor:
                return

    def find_list_id(self, name: str) -> str | None:
        """Return the id of the list with this name; None if it has not been used."""
        info = self.call("conversation.get", conversation=name)["conversation"]
        return str(info["conversation"]) if info["version"] else None

    def print_lines(self, lines: Iterable[str]) -> None:
        """Print lines for people. Text from other users in these lines must already be escaped."""
        text = "".join(f"{line}\n" for line in lines)
        if text:
            write(text)

    def print_json(self, value: Any) -> None:
        write(safe_json(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_to_builtins)) + "\n")

    def answer(self, value: Any, lines: Iterable[str]) -> int:
        """Print a result as JSON or as lines, and return exit code 0."""
        if self.args.json:
            self.print_json(value)
        else:
            self.print_lines(lines)
        return 0

    def note(self, text: str) -> None:
        """Print a note on standard error, escaped for a terminal."""
        print(safe_block(text), file=sys.stderr)

    @property
    def can_ask(self) -> bool:
        """Whether standard input and output are terminals, so that a person can answer a question."""
        return sys.stdin.isatty() and os.isatty(1)

    def confirm(self, question: str) -> bool:
        """Ask the person at the terminal and return whether they agree; True with `--yes` or without a terminal."""
        if self.args.yes or not self.can_ask:
            return True
        sys.stderr.write(f"{safe(question)} [y/N] ")
        sys.stderr.flush()
        return sys.stdin.readline().strip().lower() in ("y", "yes")

    def _check_allowed(self, meant: DirectoryList) -> None:
        data_dir = self.target.data_dir
        if meant.is_allowed(data_dir) or project.may_be_taken(meant, data_dir, self.find_list_id(meant.conversation)):
            return
        error = project.not_allowed(meant)
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise error
        sys.stderr.write(f"{safe(str(error))}.\nWork on it from here? [y/N] ")
        sys.stderr.flush()
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise error
        meant.allow(data_dir)

    def _announce_repository(self, meant: DirectoryList) -> None:
        """Report once a day that a repository's list is used. The user didn't name it and may expect `default`."""
        data_dir, name = self.target.data_dir, meant.conversation
        if meant.file is None and not project.was_announced(data_dir, name, time.time()):
            self.note(
                f"punch: using this repository's list, {name}; for the list outside of repositories: -c {OUTSIDE}"
            )
            project.note_announced(data_dir, name)


def default_actor(env: Mapping[str, str]) -> str:
    """Return the actor for this user's commands: PUNCHLIST_ACTOR, or the user who is logged in."""
    if name := env.get("PUNCHLIST_ACTOR") or env.get("USER") or env.get("LOGNAME"):
        return name
    try:
        return pwd.getpwuid(os.getuid()).pw_name  # cron, services and containers set no variables
    except KeyError:
        return "punch"  # in a container, the user may have no name


def _to_builtins(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def parse_task_ids(texts: Iterable[str] | None) -> list[str] | None:
    """Return the task ids in arguments such as `3`, `#3`, `1,2` or `3-7`; None without arguments.

    Raises:
        UsageError: An argument doesn't name a task. Empty text is an error too, because it may come from an unset shell
            variable.
    """
    return [
        task for text in texts or () for part in text.rstrip(", ").split(",") for task in _parse_range(part)
    ] or None


def _parse_range(text: str) -> list[str]:
    """Return the ids of a range such as `3-7`, or of a single task."""
    first, dash, last = (part.strip().removeprefix("#") for part in text.partition("-"))
    if not (dash and first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
        return [parse_task_id(text)]
    if not 0 <= int(last[:9]) - int(first[:9]) < _MAX_RANGE:
        raise UsageError(f"{text!r} is not a range: write 3-7, of at most {_MAX_RANGE:,} tasks")
    return [str(number) for number in range(int(first), int(last) + 1)]


if TYPE_CHECKING:

    @overload
    def parse_task_id(text: str) -> str: ...
    @overload
    def parse_task_id(text: str | None) -> str | None: ...


def parse_task_id(text: str | None) -> str | None:
    """Return the task id in an argument such as `3` or `#3`; None without an argument."""
    if text is None:
        return None
    if not (task := task_id(text.strip())):
        raise UsageError(f"{text!r} is not a task id: write 3 or #3")
    return task


def parse_loose_value(text: str) -> Any:
    """Parse a command-line argument as JSON; an argument that isn't JSON is returned as a string."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
