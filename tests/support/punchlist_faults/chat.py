"""`kill -9` of a chat at every point of a turn.

The next process must finish the turn with one change and one true answer.

SIZE is the number of kills. With 64 or more, each point is reached with each request, both with rules and with a model.
"""

import asyncio
import os
import signal
import subprocess
import sys
from typing import Any

from punchlist import AsyncClient
from punchlist_apps.chat.live import Live
from punchlist_apps.chat.models.completions import Completions
from punchlist_apps.chat.thread import Thread
from punchlist_apps.chat.worker import Worker
from punchlist_faults.options import Figures, Options, need, workplace
from punchlist_faults.process import environment
from punchlist_testing.chat import POINTS, SCENARIOS, Scenario, prepared
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.scripted_model import Script, honest, serving

ALL = [(scenario, point, model) for model in (False, True) for scenario in SCENARIOS for point in POINTS]


class _Deadly(Live):
    """Kills its own process when a turn reaches a point."""

    def __init__(self, point: str) -> None:
        super().__init__()
        self._point = point

    def start(self, turn: str) -> Any:
        def tell(name: str, _data: dict[str, Any]) -> None:
            if name == self._point:
                os.kill(os.getpid(), signal.SIGKILL)

        return tell


def run(options: Options) -> Figures:
    cases = [*ALL]
    options.random().shuffle(cases)
    if options.size >= len(ALL):
        cases = ALL
    with workplace() as place, spawned_daemon(place, "--grace", "0.05") as daemon, serving(honest) as script:
        counts = [asyncio.run(_case(daemon.socket, script, *case)) for case in cases[: options.size]]
    killed = [count for count in counts if count is not None]
    return {
        "turns": len(counts),
        "killed in them": len(killed),
        "points": ", ".join(sorted(set(killed))),
    }


async def _case(socket: str, script: Script, scenario: Scenario, point: str, by_model: bool) -> str | None:
    label = f"{scenario.name} at {point}, {'model' if by_model else 'rules'}"
    async with AsyncClient(socket=socket, autostart=False, name="harness") as client:
        talk = await prepared(client, scenario)
        turn = await talk.thread.send(scenario.text)
        words = [sys.executable, "-m", __name__, socket, talk.thread.id, turn, point]
        words += [script.url] if by_model else []
        ended = await asyncio.to_thread(subprocess.run, words, env=environment(), timeout=30, check=False)
        need(ended.returncode in (0, -signal.SIGKILL), f"{label}: the victim ended with {ended.returncode}")
        worker = Worker(Completions("scripted", script.url) if by_model else None)
        answer = await asyncio.wait_for(worker.answer(talk.thread, turn), 30)
        need(answer["text"] == scenario.answer, f"{label}: it answered {answer['text']!r}")
        need(await talk.open() == scenario.after, f"{label}: the list is {await talk.open()}")
        await talk.check(turn)
        return point if ended.returncode else None


async def _victim(socket: str, thread: str, turn: str, point: str, url: str = "") -> None:
    async with AsyncClient(socket=socket, autostart=False, name="victim") as client:
        model = Completions("scripted", url) if url else None
        await Worker(model, _Deadly(point)).answer(await Thread.find(client, thread), turn)


if __name__ == "__main__":
    asyncio.run(_victim(*sys.argv[1:]))
