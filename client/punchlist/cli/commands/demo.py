"""`punch demo`: the whole of it, from an empty directory to the proof that nothing was lost."""

from typing import Any

import msgspec

from punchlist.cli.context import Context
from punchlist.cli.demo.home import Home
from punchlist.cli.demo.play import Player, Recording, load
from punchlist.cli.demo.stage import LiveStage, PlainStage
from punchlist.cli.demo.witness import Witness
from punchlist.cli.eventlines import Storyteller
from punchlist.cli.render import list_lines
from punchlist.text import safe

_CATCH_UP_S = 20.0
_LOG_LINES = 8


def run_demo(context: Context) -> int:
    """Play the session; exit code 1 if anything acknowledged is missing."""
    recording = load()
    live = context.look.moves and not context.args.fast
    context.look.now = 0
    with Home() as home:
        _title(context, f"{recording.title}; a private daemon in {home.path}")
        if live:
            player = _play_live(context, home, recording)
        else:
            player = Player(home, recording, PlainStage(context.look))
            _begin(player, home, recording)
            player.play()
            _show_list(context, recording, player.call("task.list"))
        return _finale(context, player, recording)


def _play_live(context: Context, home: Home, recording: Recording) -> Player:
    stage = LiveStage(context.look, recording.conversation)
    player = Player(home, recording, stage)
    _begin(player, home, recording)
    stage.follow(home.client("punch watch"))
    with stage.screen:
        player.play()
    return player


def _begin(player: Player, home: Home, recording: Recording) -> None:
    player.client.open()
    process = home.spawn("log", "--follow", "--json", "-c", recording.conversation)
    player.witness = Witness(process, player.tell_figures)


def _finale(context: Context, player: Player, recording: Recording) -> int:
    lost = _proof(context, player)
    _title(context, "the end of the log (punch log)")
    events = player.call("event.read", after=0)["events"]
    story = Storyteller(context.look, dated=False, margin=2)
    context.lines([f"  {story.line(event)}" for event in events][-_LOG_LINES:])
    _title(context, "and back: the last two calls (punch undo -n 2)")
    undone = player.call("list.undo", count=2)
    player.account.take(undone)
    context.lines(f"  {safe(line)}" for line in undone["undone"])
    _show_list(context, recording, player.call("task.list"))
    middle = _version_at_failure(events)
    _title(context, f"the list as it was when a task failed (punch list --at {middle})")
    _show_list(context, recording, player.call("task.list", at_version=middle))
    return int(lost)


def _proof(context: Context, player: Player) -> bool:
    """Compare what was acknowledged with what is in the log and with what the second process was told."""
    account, witness = player.account, player.witness
    assert witness is not None
    events = player.call("event.read", after=0, limit=10_000)["events"]
    caught_up = witness.wait_for(len(events), _CATCH_UP_S)
    versions = [event["version"] for event in events]
    seqs = {event["seq"] for event in events}
    checks = (
        ("every acknowledged call is in the log", set(account.seqs) <= seqs and len(events) == account.version),
        ("versions without a hole", versions == list(range(1, len(events) + 1))),
        ("the second process was told every event once and in order", caught_up and witness.in_order),
        ("no call was done twice", account.seqs == sorted(set(account.seqs))),
    )
    _title(context, f"{account.kills} kill -9, {account.calls} acknowledged calls, {len(events)} events in the log")
    for text, good in checks:
        mark = context.look.paint("ok", "yes") if good else context.look.paint("fail", " NO")
        context.lines([f"  {mark}  {text}"])
    context.lines([f"  process {witness.pid} was told {witness.count} events"])
    return not all(good for _, good in checks)


def _version_at_failure(events: list[dict[str, Any]]) -> int:
    failures = [event["version"] for event in events if event["event"].get("to") == "failed"]
    return failures[0] if failures else len(events) // 2


def _show_list(context: Context, recording: Recording, result: dict[str, Any]) -> None:
    counts: dict[str, int] = msgspec.to_builtins(result["counts"])
    context.lines(list_lines(recording.conversation, result["tasks"], counts, context.look))


def _title(context: Context, text: str) -> None:
    context.lines(["", context.look.paint("title", text)])
