"""The demo (`make demo`): the whole of it, from an empty directory to the proof that nothing was lost."""

import os
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from punchlist.cli.event_lines import EventFormatter
from punchlist.cli.render import list_lines
from punchlist.cli.style import Style, style_of, write
from punchlist.text import safe
from punchlist_demo.home import Home
from punchlist_demo.play import Player, Recording, load
from punchlist_demo.stage import LiveStage, PlainStage
from punchlist_demo.witness import Witness

_CATCH_UP_S = 20.0
_LOG_LINES = 8


def main(arguments: list[str]) -> int:
    """Play the session, with `--fast` in plain lines; exit code 1 if anything acknowledged is missing."""
    recording = load()
    style = style_of(os.environ)
    live = style.moves and "--fast" not in arguments
    with Home() as home:
        _title(style, f"{recording.title}; a private daemon in {home.path}")
        if live:
            player = _play_live(style, home, recording)
        else:
            player = Player(home, recording, PlainStage(style))
            _begin(player, home, recording)
            player.play()
            _show_list(style, recording, player.call("task.list"))
        return _finale(style, player, recording)


def _play_live(style: Style, home: Home, recording: Recording) -> Player:
    stage = LiveStage(style, recording.conversation)
    player = Player(home, recording, stage)
    _begin(player, home, recording)
    stage.follow(home.client("punch watch"))
    with stage.screen:
        player.play()
    return player


def _begin(player: Player, home: Home, recording: Recording) -> None:
    player.client.open()
    player.call("conversation.open")  # who follows a list that is not there yet is refused
    process = home.spawn("log", "--follow", "--json", "-c", recording.conversation)
    player.witness = Witness(process, player.tell_figures)


def _finale(style: Style, player: Player, recording: Recording) -> int:
    lost = _proof(style, player)
    _title(style, "the end of the log (punch log)")
    events = player.call("event.read", after=0)["events"]
    story = EventFormatter(style, dated=False, margin=2)
    _print([f"  {story.line(event)}" for event in events][-_LOG_LINES:])
    _title(style, "and back: the last two calls (punch undo -n 2)")
    undone = player.call("list.undo", count=2)
    player.account.take(undone)
    _print(f"  {safe(line)}" for line in undone["undone"])
    _show_list(style, recording, player.call("task.list"))
    middle = _version_at_failure(events)
    _title(style, f"the list as it was when a task failed (punch list --at {middle})")
    _show_list(style, recording, player.call("task.list", at_version=middle))
    return int(lost)


def _proof(style: Style, player: Player) -> bool:
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
    _title(style, f"{account.kills} kill -9, {account.calls} acknowledged calls, {len(events)} events in the log")
    for text, good in checks:
        mark = style.paint("ok", "yes") if good else style.paint("fail", " NO")
        _print([f"  {mark}  {text}"])
    _print([f"  process {witness.pid} was told {witness.count} events"])
    return not all(good for _, good in checks)


def _version_at_failure(events: list[dict[str, Any]]) -> int:
    failures = [event["version"] for event in events if event["event"].get("to") == "failed"]
    return failures[0] if failures else len(events) // 2


def _show_list(style: Style, recording: Recording, result: dict[str, Any]) -> None:
    counts: dict[str, int] = msgspec.to_builtins(result["counts"])
    _print(list_lines(recording.conversation, result["tasks"], counts, style))


def _title(style: Style, text: str) -> None:
    _print(["", style.paint("title", text)])


def _print(lines: Iterable[str]) -> None:
    write("".join(f"{line}\n" for line in lines))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
