"""`punch space`, `punch share`, `punch join` and `punch leave`: shared lists and their spaces."""

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from punchlist.base.text import safe
from punchlist_apps.cli.calling.context import Context
from punchlist_apps.cli.installing.space_server import ROLES
from punchlist_apps.cli.parsing.arguments import YES, Argument, Usage, flag, value
from punchlist_apps.cli.printing import stored
from punchlist_apps.cli.printing.deletions import describe_deletion
from punchlist_apps.cli.printing.exit_codes import REFUSED
from punchlist_apps.cli.printing.failure import StateError, UsageError, show_error
from punchlist_apps.cli.printing.summaries import format_server
from punchlist_apps.common.terminal.argument_types import parse_positive
from punchlist_apps.common.terminal.render import format_time
from punchlist_apps.common.terminal.style import Style

if TYPE_CHECKING:
    from punchlist_apps.cli.installing.space_directory import Outcome


_NAME = Argument(("name",), "the space: a-z, 0-9 and -", {"metavar": "SPACE"})
_LIST = Argument(("list",), "the list (default: this directory's)", {"metavar": "LIST", "nargs": "?"}, "list")
_SPACE = value("--space", text="the space (default: the only one)", metavar="SPACE")


def _repeatable(*flags: str, text: str, metavar: str = "NAME", complete: str = "") -> Argument:
    return value(*flags, text=f"{text}; repeatable", metavar=metavar, complete=complete, action="append", default=[])


COMMANDS = {
    "add": Usage(
        (
            _NAME,
            Argument(
                ("urls",),
                "a server, as tls://HOST or tls://HOST:PORT; or postgres://USER@HOST/DATABASE",
                {"metavar": "URL", "nargs": "+"},
            ),
            value("--creds", text="authenticate with this credentials file", metavar="FILE", complete="file"),
            value(
                "--ca", text="trust these authorities (PEM) instead of the system's", metavar="FILE", complete="file"
            ),
            _repeatable(
                "--monitor", text="check at this monitor that the server flushes before it acknowledges", metavar="URL"
            ),
            value(
                "--replicas",
                text="store each change on N servers (default: 3 in a cluster)",
                metavar="N",
                type=parse_positive,
            ),
        ),
        (
            "punch space add team tls://lists.example.org --creds team.creds",
            "punch space add team tls://a.example.org tls://b.example.org tls://c.example.org --creds team.creds",
            "punch space add team postgres://ann@db.example.org/punchlist --creds ann.creds",
        ),
    ),
    "list": Usage((), ("punch space list",)),
    "status": Usage(
        (Argument(("name",), "the space (default: all)", {"metavar": "SPACE", "nargs": "?"}),),
        ("punch space status", "punch space status team --json"),
    ),
    "remove": Usage((_NAME, YES), ("punch space remove team",)),
    "server": Usage(
        (
            _NAME,
            _repeatable("--host", text="add a server under this host name; three tolerate the loss of one"),
            _repeatable("--member", text="add a member that reads and changes, and write its creds"),
            _repeatable("--reader", text="add a member that only reads, and write its creds"),
            _repeatable("--keeper", text="add a member that can also erase permanently, and write its creds"),
            _repeatable("--without", text="remove a member; with --member of the same name, write new creds"),
            value(
                "--postgres",
                text="write SQL for a space in this database instead of a NATS configuration",
                metavar="DATABASE",
            ),
            value(
                "--to",
                text="write to this new or existing directory (default: SPACE-server)",
                metavar="DIR",
                complete="file",
            ),
        ),
        (
            "punch space server team --host lists.example.org --member ann --member ci",
            "punch space server team --host a.example.org --host b.example.org --host c.example.org --member ann",
            "punch space server team --postgres punchlist --host db.example.org --member ann",
            "punch space server team --member carol",
            "punch space server team --without carol",
        ),
    ),
    "share": Usage(
        (
            _LIST,
            _SPACE,
            flag("--repair", text="restore changes of a shared list that the space has lost"),
        ),
        ("punch share release-1.0 --space team", "punch share release-1.0 --repair"),
    ),
    "join": Usage(
        (Argument(("list",), "the list, by its name in the space", {"metavar": "LIST"}), _SPACE),
        ("punch join release-1.0 --space team",),
    ),
    "leave": Usage(
        (
            _LIST,
            value("--keep-as", text="copy the tasks to a list of this name, on this machine only", metavar="NAME"),
            YES,
        ),
        ("punch leave release-1.0", "punch leave release-1.0 --keep-as my-copy"),
    ),
}


def run_add(context: Context) -> int:
    args = context.args
    files = {name: os.path.abspath(path) for name in ("creds", "ca") if (path := getattr(args, name))}
    result = context.call(
        "space.add", space=args.name, urls=args.urls, monitors=args.monitor, replicas=args.replicas, **files
    )
    return context.answer(result, _format_added(result))


def _format_added(result: dict[str, Any]) -> Iterator[str]:
    space = result["space"]
    name = safe(space["space"])
    created = "created" if result.get("made") else "found"
    encrypted = "TLS" if _is_encrypted(space) else "no TLS, this machine only"
    yield f"added {name}: {created} at {safe(space.get('server', ''))} ({format_server(space)}, {encrypted})"
    if "sync_interval" in space.get("unchecked", ()):
        yield "  not checked: whether the server flushes before it acknowledges; to check, add --monitor URL"
    yield f"  to share a list: punch share LIST --space {name}; to join one: punch join LIST --space {name}"


def _is_encrypted(space: dict[str, Any]) -> bool:
    """Return whether the connection to a space's server uses TLS. Without TLS, only local servers are accepted."""
    url = space.get("server", "")
    local = re.search(r"@(127\.|localhost[:/]|\[::1\])", url) is not None and not space.get("ca")
    return url.startswith("tls://") or (url.startswith("postgres://") and not local)


def run_list(context: Context) -> int:
    result = context.call("space.list")
    return context.answer(result, _format_spaces(result.get("spaces", []), context.style))


def _format_spaces(spaces: list[dict[str, Any]], style: Style) -> Iterator[str]:
    if not spaces:
        yield "no spaces; to add one: punch space add NAME tls://HOST --creds FILE"
    for space in spaces:
        yield f"{style.paint('title', safe(space['space']))}  {_format_state(space, style)}"
        for replica in space.get("lists", ()):
            yield f"  {safe(replica['conversation'])}  {_format_list_state(replica)}"


def _format_state(space: dict[str, Any], style: Style) -> str:
    if space["state"] == "up":
        reading = "" if space.get("may_post", True) else ", read-only"
        return f"up at {safe(space.get('server', ''))}{reading}"
    return style.paint("fail" if space["state"] == "refused" else "warn", f"{space['state']}") + (
        f": {safe(space['reason'])}" if space.get("reason") else ""
    )


def _format_list_state(replica: dict[str, Any]) -> str:
    if (deleted := replica.get("deleted")) is not None:
        return f"version {replica.get('version', 0)}, {describe_deletion(deleted)}"
    reason = f": {safe(replica['reason'])}" if replica.get("reason") else ""
    texts = {"offline": "offline: changes are rejected, reading still works", "behind": "catching up"}
    return f"version {replica.get('version', 0)}, {texts.get(replica['state'], replica['state'])}{reason}"


def run_status(context: Context) -> int:
    spaces = context.call("space.list").get("spaces", [])
    if context.args.name is not None:
        spaces = [space for space in spaces if space["space"] == context.args.name]
        if not spaces:
            show_error("not_found", f"no space named {safe(context.args.name)}", "see all spaces: punch space list")
            return REFUSED
    return context.answer({"spaces": spaces}, _format_details(spaces, context.style))


def _format_details(spaces: list[dict[str, Any]], style: Style) -> Iterator[str]:
    from punchlist_schemas.things import machine_of

    if not spaces:
        yield from _format_spaces(spaces, style)
    for space in spaces:
        yield f"{style.paint('title', safe(space['space']))}  {_format_state(space, style)}"
        facts = {
            "since": format_time(space["since"]) if space.get("since") else "",
            "servers": " ".join(map(safe, space["urls"])),
            "version": format_server(space) if space.get("server_version") else "",
            "round trip": f"{space['round_trip_ms']:g} ms"
            if space["state"] == "up" and "round_trip_ms" in space
            else "",
            "this machine": safe(space.get("member", "")),
            "creds": safe(space.get("creds", "")),
            "configured by": "the environment" if space.get("source") == "environment" else "",
            "not checked": ", ".join(map(safe, space.get("unchecked", ()))),
        }
        yield from (f"  {name:<13} {fact}" for name, fact in facts.items() if fact)
        for replica in space.get("lists", ()):
            counts = f"; {replica.get('posts', 0)} posts from here, {replica.get('conflicts', 0)} conflicts"
            yield f"  list {safe(replica['conversation'])}: {_format_list_state(replica)}{counts}"
        for machine in space.get("machines", ()):
            lists = f", with {', '.join(map(safe, machine['lists']))}" if machine.get("lists") else ""
            yield f"  machine {safe(machine_of(machine['member']))}: last seen {format_time(machine['seen_at'])}{lists}"


def run_remove(context: Context) -> int:
    result = context.call("space.remove", space=context.args.name)
    lines = [f"removed {safe(result['removed'])}; its servers and other machines keep their lists"]
    lines += [
        f"  {safe(name)}, which was left before, is now a list of this machine only and can be changed again"
        for name in result.get("copies", ())
    ]
    return context.answer(result, lines)


def run_share(context: Context) -> int:
    name = context.args.list or context.conversation
    context.check_list(name)
    result = context.call("list.share", conversation=name, space=_resolve_space(context), repair=context.args.repair)
    space, version = safe(result["space"]), result["version"]
    if context.args.repair:
        repaired = f"restored {result['posts']} posts of" if result["posts"] else "nothing is missing of"
        return context.answer(result, [f"{repaired} {safe(name)} in {space}, version {version}"])
    lines = [
        f"shared {safe(name)} in {space}, version {version}",
        f"  on another machine: punch join {safe(name)} --space {space}",
    ]
    return context.answer(result, lines)


def run_join(context: Context) -> int:
    name = context.args.list
    result = context.call("list.join", conversation=name, space=_resolve_space(context))
    space, version = safe(result["space"]), result["version"]
    return context.answer(result, [f"joined {safe(name)} of {space}, version {version}: punch list -c {safe(name)}"])


def run_leave(context: Context) -> int:
    """Stop following a list. The local copy becomes read-only; `--keep-as` copies its tasks to another list first."""
    args = context.args
    name = args.list or context.conversation
    if args.keep_as is None and not args.yes:
        if not context.can_ask:
            raise UsageError(
                "leave stops following the list, and its copy here becomes read-only; to confirm, add --yes; to get a"
                " copy that you can change, add --keep-as NAME"
            )
        if not context.confirm(
            f"Stop following {safe(name)}? Its copy here becomes read-only; other machines are not affected."
        ):
            context.note("nothing was changed")
            return REFUSED
    result = context.call("list.leave", conversation=name, keep_as=args.keep_as)
    kept_as = result.get("kept_as")
    copied = f"; its tasks are in {safe(kept_as)}, which you can change" if kept_as else ""
    lines = [f"left {safe(name)}: its copy here is now read-only{copied}"]
    return context.answer(result, [*lines, f"  to erase the copy on this machine, too: punch list rm {safe(name)}"])


def _resolve_space(context: Context) -> str:
    """Return the space named by `--space`, else the only configured space."""
    if context.args.space is not None:
        return str(context.args.space)
    names = [space["space"] for space in context.call("space.list").get("spaces", [])]
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise StateError("no spaces; add one: punch space add NAME tls://HOST --creds FILE")
    raise UsageError(f"there are several spaces; name one with --space: {', '.join(names)}")


def run_server(context: Context) -> int:
    """Add or remove members in the configuration files of a space's server. Either all files are written or none."""
    from punchlist_apps.cli.installing.space_directory import Request, update
    from punchlist_schemas.spaces import SPACE_PATTERN

    args = context.args
    if re.match(SPACE_PATTERN, args.name) is None:
        raise UsageError(f"invalid space name {args.name!r}; use 1 to 32 of a-z, 0-9 and -")
    for host in args.host:
        if re.fullmatch(r"[A-Za-z0-9_.:-]+", host) is None:
            raise UsageError(f"invalid host {host!r}; give a name, such as --host lists.example.org")
    if args.postgres is not None and re.fullmatch(r"[A-Za-z0-9_.-]+", args.postgres) is None:
        raise UsageError(
            "invalid database name for --postgres; use letters, digits, - . and _, such as --postgres punchlist"
        )
    names = [*args.member, *args.reader, *args.keeper]
    for group in (names, args.without):
        if len(set(group)) != len(group) or any(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name) is None for name in group):
            raise UsageError(
                "invalid or repeated member; use unique names of letters, digits, - and _: --member ann --member bob"
            )
    roles = {name: role for role in ROLES for name in getattr(args, role)}
    folder = args.to or f"{args.name}-server"
    outcome = update(folder, Request(args.name, args.host, args.postgres, roles, args.without))
    if outcome.files:
        stored.record(f"the files in {folder}")
    return context.answer({"directory": os.path.abspath(folder), **outcome._asdict()}, _format_server(folder, outcome))


def _format_server(folder: str, outcome: "Outcome") -> Iterator[str]:
    yield from (f"wrote {safe(os.path.join(folder, name))}" for name in outcome.files)
    yield from (
        f"removed {name}: {name}.creds is invalid once the server has the new files" for name in outcome.removed
    )
    if not outcome.files:
        yield f"nothing was changed; members in {safe(folder)}:"
        yield from (f"  {name}  {role}" for name, role in outcome.members.items())
        yield "  to add one: --member NAME; to remove one: --without NAME"
    yield from (f"  {step}" for step in outcome.steps)
