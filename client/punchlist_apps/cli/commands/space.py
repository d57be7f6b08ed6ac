"""`punch space`, `punch share`, `punch join` and `punch leave`: lists on several machines."""

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
from punchlist_apps.cli.printing.summaries import product
from punchlist_apps.common.terminal.argument_types import parse_positive
from punchlist_apps.common.terminal.render import format_time
from punchlist_apps.common.terminal.style import Style

if TYPE_CHECKING:
    from punchlist_apps.cli.installing.space_directory import Outcome


_NAME = Argument(("name",), "the space, of a-z, 0-9 and -", {"metavar": "SPACE"})
_LIST = Argument(("list",), "the list (default: this directory's)", {"metavar": "LIST", "nargs": "?"}, "list")
_SPACE = value("--space", text="the space (default: the only one)", metavar="SPACE")


def _repeated(*flags: str, text: str, metavar: str = "NAME", complete: str = "") -> Argument:
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
            value("--creds", text="the file that lets this machine in", metavar="FILE", complete="file"),
            value(
                "--ca", text="trust these authorities (PEM) instead of the system's", metavar="FILE", complete="file"
            ),
            _repeated(
                "--monitor", text="ask this monitor whether the server writes before it acknowledges", metavar="URL"
            ),
            value(
                "--replicas",
                text="hold each change on N servers (default: 3 in a cluster)",
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
            _repeated("--host", text="the name by which members reach a server; three keep the space up"),
            _repeated("--member", text="let in a member who reads and changes, and write its creds"),
            _repeated("--reader", text="let in a member who only reads, and write its creds"),
            _repeated("--keeper", text="let in a member who may also erase for good, and write its creds"),
            _repeated("--without", text="take a member out; with --member of the same name, write new creds"),
            value(
                "--postgres",
                text="write the SQL that makes the space in this database, instead of NATS' configuration",
                metavar="DATABASE",
            ),
            value(
                "--to",
                text="the files' directory, a new one or one to change (default: SPACE-server)",
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
            flag("--repair", text="put back what the space has lost of a list that is shared"),
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
            value("--keep-as", text="keep the tasks as a list of this name, of this machine alone", metavar="NAME"),
            YES,
        ),
        ("punch leave release-1.0", "punch leave release-1.0 --keep-as my-copy"),
    ),
}


def run_add(context: Context) -> int:
    args = context.args
    files = {name: os.path.abspath(path) for name in ("creds", "ca") if (path := getattr(args, name))}
    made = context.call(
        "space.add", space=args.name, urls=args.urls, monitors=args.monitor, replicas=args.replicas, **files
    )
    return context.answer(made, _added(made))


def _added(made: dict[str, Any]) -> Iterator[str]:
    space = made["space"]
    name = safe(space["space"])
    how = "made" if made.get("made") else "found"
    encrypted = "TLS" if _is_encrypted(space) else "no TLS, this machine alone"
    yield f"added {name}: {how} at {safe(space.get('server', ''))} ({product(space)}, {encrypted})"
    if "sync_interval" in space.get("unchecked", ()):
        yield "  not checked: whether the server writes before it acknowledges; --monitor URL lets it be asked"
    yield f"  to share a list: punch share LIST --space {name}; to get one: punch join LIST --space {name}"


def _is_encrypted(space: dict[str, Any]) -> bool:
    """Whether what goes to a space's server is: without TLS nothing but this machine is let in as one."""
    url = space.get("server", "")
    local = re.search(r"@(127\.|localhost[:/]|\[::1\])", url) is not None and not space.get("ca")
    return url.startswith("tls://") or (url.startswith("postgres://") and not local)


def run_list(context: Context) -> int:
    result = context.call("space.list")
    return context.answer(result, _listed(result.get("spaces", []), context.style))


def _listed(spaces: list[dict[str, Any]], style: Style) -> Iterator[str]:
    if not spaces:
        yield "no space; to add one: punch space add NAME tls://HOST --creds FILE"
    for space in spaces:
        yield f"{style.paint('title', safe(space['space']))}  {_state(space, style)}"
        for one in space.get("lists", ()):
            yield f"  {safe(one['conversation'])}  {_list_state(one)}"


def _state(space: dict[str, Any], style: Style) -> str:
    if space["state"] == "up":
        reading = "" if space.get("may_post", True) else ", may only read"
        return f"up at {safe(space.get('server', ''))}{reading}"
    return style.paint("fail" if space["state"] == "refused" else "warn", f"{space['state']}") + (
        f": {safe(space['reason'])}" if space.get("reason") else ""
    )


def _list_state(one: dict[str, Any]) -> str:
    if (deleted := one.get("deleted")) is not None:
        return f"version {one.get('version', 0)}, {describe_deletion(deleted)}"
    reason = f": {safe(one['reason'])}" if one.get("reason") else ""
    told = {"offline": "offline: changes are refused, reading goes on", "behind": "catching up"}
    return f"version {one.get('version', 0)}, {told.get(one['state'], one['state'])}{reason}"


def run_status(context: Context) -> int:
    spaces = context.call("space.list").get("spaces", [])
    if context.args.name is not None:
        spaces = [one for one in spaces if one["space"] == context.args.name]
        if not spaces:
            show_error(
                "not_found", f"there is no space {safe(context.args.name)}", "punch space list shows what there is"
            )
            return REFUSED
    return context.answer({"spaces": spaces}, _details(spaces, context.style))


def _details(spaces: list[dict[str, Any]], style: Style) -> Iterator[str]:
    from punchlist_schemas.things import machine_of

    if not spaces:
        yield from _listed(spaces, style)
    for space in spaces:
        yield f"{style.paint('title', safe(space['space']))}  {_state(space, style)}"
        facts = {
            "since": format_time(space["since"]) if space.get("since") else "",
            "servers": " ".join(map(safe, space["urls"])),
            "version": product(space) if space.get("server_version") else "",
            "round trip": f"{space['round_trip_ms']:g} ms"
            if space["state"] == "up" and "round_trip_ms" in space
            else "",
            "this machine": safe(space.get("member", "")),
            "creds": safe(space.get("creds", "")),
            "configured by": "the environment" if space.get("source") == "environment" else "",
            "not checked": ", ".join(map(safe, space.get("unchecked", ()))),
        }
        yield from (f"  {name:<13} {fact}" for name, fact in facts.items() if fact)
        for one in space.get("lists", ()):
            counts = f"; {one.get('posts', 0)} posts from here, {one.get('conflicts', 0)} behind another's"
            yield f"  list {safe(one['conversation'])}: {_list_state(one)}{counts}"
        for one in space.get("machines", ()):
            lists = f", with {', '.join(map(safe, one['lists']))}" if one.get("lists") else ""
            yield f"  machine {safe(machine_of(one['member']))}: last seen {format_time(one['seen_at'])}{lists}"


def run_remove(context: Context) -> int:
    result = context.call("space.remove", space=context.args.name)
    lines = [f"removed {safe(result['removed'])}; its servers and other machines keep what they have"]
    lines += [
        f"  {safe(name)}, which was left, is a list of this machine alone now, and takes changes again"
        for name in result.get("copies", ())
    ]
    return context.answer(result, lines)


def run_share(context: Context) -> int:
    name = context.args.list or context.conversation
    context.check_list(name)
    made = context.call("list.share", conversation=name, space=_only_space(context), repair=context.args.repair)
    space = safe(made["space"])
    if context.args.repair:
        told = f"put back {made['posts']} posts of" if made["posts"] else "nothing is missing of"
        return context.answer(made, [f"{told} {safe(name)} in {space}, version {made['version']}"])
    lines = [
        f"shared {safe(name)} in {space}, version {made['version']}",
        f"  on another machine: punch join {safe(name)} --space {space}",
    ]
    return context.answer(made, lines)


def run_join(context: Context) -> int:
    name = context.args.list
    made = context.call("list.join", conversation=name, space=_only_space(context))
    lines = [f"joined {safe(name)} of {safe(made['space'])}, version {made['version']}: punch list -c {safe(name)}"]
    return context.answer(made, lines)


def run_leave(context: Context) -> int:
    """Stop following a list. It stays here as it is, for reading alone; `--keep-as` copies its tasks first."""
    args = context.args
    name = args.list or context.conversation
    if args.keep_as is None and not args.yes:
        if not context.can_ask:
            raise UsageError(
                "leave stops following the list: it stays here as it is and takes no changes; add --yes, or for a copy"
                " that you can change --keep-as NAME"
            )
        if not context.confirmed(
            f"Stop following {safe(name)}? It stays here as it is and takes no changes; other machines go on."
        ):
            context.note("nothing was changed")
            return REFUSED
    left = context.call("list.leave", conversation=name, keep_as=args.keep_as)
    kept = left.get("kept_as")
    copied = f"; its tasks are in {safe(kept)}, which you can change" if kept else ""
    lines = [f"left {safe(name)}: it stays here as it is and takes no changes{copied}"]
    return context.answer(left, [*lines, f"  to erase the copy on this machine, too: punch list rm {safe(name)}"])


def _only_space(context: Context) -> str:
    """The space that is meant: the option, or the one that there is."""
    if context.args.space is not None:
        return str(context.args.space)
    names = [one["space"] for one in context.call("space.list").get("spaces", [])]
    if len(names) == 1:
        return str(names[0])
    if not names:
        raise StateError("there is no space yet: punch space add NAME tls://HOST --creds FILE")
    raise UsageError(f"there are several spaces: add --space, one of {', '.join(names)}")


def run_server(context: Context) -> int:
    """Let members into a space or take some out, in the files of its server; all of them are written, or none."""
    from punchlist_apps.cli.installing.space_directory import Request, update
    from punchlist_schemas.spaces import SPACE_PATTERN

    args = context.args
    if re.match(SPACE_PATTERN, args.name) is None:
        raise UsageError(f"{args.name!r} can't be a space: give 1 to 32 of a-z, 0-9 and -")
    for host in args.host:
        if re.fullmatch(r"[A-Za-z0-9_.:-]+", host) is None:
            raise UsageError(f"{host!r} is not a host: --host lists.example.org")
    if args.postgres is not None and re.fullmatch(r"[A-Za-z0-9_.-]+", args.postgres) is None:
        raise UsageError("--postgres is a database's name, of letters, digits, - . and _: --postgres punchlist")
    names = [*args.member, *args.reader, *args.keeper]
    for group in (names, args.without):
        if len(set(group)) != len(group) or any(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name) is None for name in group):
            raise UsageError("each member has another name, of letters, digits, - and _: --member ann --member bob")
    roles = {name: role for role in ROLES for name in getattr(args, role)}
    folder = args.to or f"{args.name}-server"
    outcome = update(folder, Request(args.name, args.host, args.postgres, roles, args.without))
    if outcome.files:
        stored.record(f"the files in {folder}")
    return context.answer({"directory": os.path.abspath(folder), **outcome._asdict()}, _served(folder, outcome))


def _served(folder: str, outcome: "Outcome") -> Iterator[str]:
    yield from (f"wrote {safe(os.path.join(folder, name))}" for name in outcome.files)
    yield from (f"took out {name}: {name}.creds lets nobody in once the server knows" for name in outcome.removed)
    if not outcome.files:
        yield f"nothing was changed; {safe(folder)} lets in:"
        yield from (f"  {name}  {role}" for name, role in outcome.members.items())
        yield "  to add one: --member NAME; to take one out: --without NAME"
    yield from (f"  {step}" for step in outcome.steps)
