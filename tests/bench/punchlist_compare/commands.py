"""Duration and processor time of whole commands."""

import re
from dataclasses import dataclass

from punchlist_bench.table import progress
from punchlist_compare.comparison import Comparison
from punchlist_compare.peers import OPERATIONS, Peer
from punchlist_compare.place import Place, Run, UnmeasuredError


@dataclass
class _Command:
    """An operation of one peer; `rounds` is the number of samples to take."""

    peer: Peer
    place: Place
    operation: str
    rounds: int

    @property
    def key(self) -> str:
        return f"{self.operation}.{self.place.size}."


def measure(comparison: Comparison) -> None:
    for size in comparison.sizes:
        progress(f"commands, {size:,} tasks")
        with comparison.open_places(size) as places:
            commands = [
                _Command(peer, place, operation, comparison.rounds)
                for operation in OPERATIONS
                for peer, place in places
                if operation in peer.commands
            ]
            ids: dict[str, str] = {}
            for turn in range(comparison.rounds + 1):
                for command in commands:
                    if turn <= command.rounds and not comparison.has_failed(command.peer, f"{command.key}wall"):
                        _take_sample(comparison, command, ids, turn)


def _take_sample(comparison: Comparison, command: _Command, ids: dict[str, str], turn: int) -> None:
    peer, key = command.peer, command.key
    with comparison.explaining(peer, key):
        run = _run(command, ids)
        if turn:
            comparison.results.add(f"{key}wall", peer.name, run.wall_s * 1e3)
            comparison.results.add(f"{key}cpu", peer.name, run.processor_s * 1e3)
        else:
            command.rounds = comparison.pick_rounds(peer, run.wall_s, key)


def _run(command: _Command, ids: dict[str, str]) -> Run:
    """Run a command; `ids` has the task that each peer added last."""
    peer, place = command.peer, command.place
    if command.operation == "done" and peer.name not in ids:
        raise UnmeasuredError("no task to complete: add failed")
    words = peer.commands[command.operation]
    run = place.time(place.fill_words(words, title=place.next_title(), id=ids.get(peer.name, "")))
    if command.operation == "add":
        created = re.search(peer.created, run.output, re.MULTILINE)
        if created is None:
            raise UnmeasuredError("add printed no id")
        ids[peer.name] = created[1]
    return run
