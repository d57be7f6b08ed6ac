"""Figures of the extension in VS Code. KILLS is the number of kills of the daemon."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from punchlist import connect
from punchlist_bench.table import grid
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.vscode import EXTENSION, NODE, TASKS, Editor, Window, chromium

Row = tuple[str, str, str]
"""Description, figure and maximum."""

TASKS_OPENED = 1000
ROUNDS = 50
KILLS = int(os.environ.get("KILLS") or 200)

OBSERVE = """([rows, text]) => {
    window.seen = null;
    new MutationObserver((_, observer) => {
        if (!document.querySelector(rows)?.innerText.includes(text)) return;
        window.seen = Date.now();
        observer.disconnect();
    }).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""
"""Sets `window.seen` to the time when the text appears on the screen."""

DRAWING = """
    punchlist.tree.show(punchlist.list);
    const before = process.cpuUsage();
    for (const id of punchlist.tree.getChildren()) punchlist.tree.getTreeItem(id);
    const { user, system } = process.cpuUsage(before);
    return user + system;"""


def measure_opening(window: Window, name: str) -> tuple[float, float, float]:
    """Return the times until all rows are requested and until the first row is visible, and the duration of the longest
    block, all in milliseconds."""
    window.page.evaluate(OBSERVE, [TASKS, name])
    began, drawn, longest = window.js(
        """
        const delay = process.getBuiltinModule('node:perf_hooks').monitorEventLoopDelay({ resolution: 1 });
        const before = punchlist.tree.drawn;
        delay.enable();
        const began = Date.now();
        void vscode.commands.executeCommand('punchlist.openList', given[0]);
        while (punchlist.tree.drawn < before + given[1]) await new Promise((done) => setImmediate(done));
        const drawn = Date.now();
        await new Promise((done) => setTimeout(done, 500));
        delay.disable();
        return [began, drawn, delay.max / 1e6];""",
        name,
        TASKS_OPENED,
    )
    window.page.wait_for_function("window.seen")
    return drawn - began, window.page.evaluate("window.seen") - began, longest


def measure_latency(window: Window, plan: Any, round: int) -> float:
    """Return the milliseconds from an agent's response until its change is on the screen."""
    window.page.evaluate(OBSERVE, [TASKS, f"Changed {round}"])
    plan.edit("1", title=f"Changed {round}")
    answered = time.time() * 1000
    window.page.wait_for_function("window.seen")
    return max(0.0, window.page.evaluate("window.seen") - answered)


def measure_in_vs_code() -> list[Row]:
    openings, times = list[tuple[float, float, float]](), list[float]()
    with (
        tempfile.TemporaryDirectory() as directory,
        spawned_daemon(Path(directory) / "daemon") as daemon,
        connect(socket=daemon.socket, autostart=False, name="agent") as client,
        chromium() as browser,
        Editor(browser, daemon.socket, Path(directory) / "editor") as editor,
    ):
        window = editor.window()
        window.js("await vscode.commands.executeCommand('punchlist.tasks.focus')")
        for number in range(5):
            plan = client.conversation(f"opened-{number}")
            plan.add_many([f"{plan.id} {at}" for at in range(TASKS_OPENED)])
            openings.append(measure_opening(window, plan.id))
        drawing = window.js(DRAWING) / 1000
        plan = client.conversation("opened-4")
        before = window.js("return punchlist.tree.drawn")
        for round in range(ROUNDS):
            times.append(measure_latency(window, plan, round))
            window.page.wait_for_timeout(250)  # VS Code debounces changes by 200 ms
        pushed = (window.js("return punchlist.tree.drawn") - before) / ROUNDS
    drawn, painted, blocked = (statistics.median(column) for column in zip(*openings, strict=True))
    busy = "longest time that the extension host was busy, including VS Code's own work"
    seen = "from the response to an agent's change to the screen, median"
    return [
        ("opening 1,000 tasks: all rows passed to VS Code", f"{drawn:.0f} ms", ""),
        ("opening 1,000 tasks: the first row on the screen", f"{painted:.0f} ms", "200 ms"),
        (busy, f"{blocked:.0f} ms", ""),
        ("processor time to draw 1,000 rows", f"{drawing:.1f} ms", "50 ms"),
        (seen, f"{statistics.median(times):.0f} ms", "50 ms"),
        ("rows drawn for a push that changes one task", f"{pushed:g}", "1"),
    ]


def measure(*, quick: bool) -> str:
    rows = measure_in_vs_code()
    env = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    result = subprocess.run(
        [NODE, "--expose-gc", "test/memory.ts"], cwd=EXTENSION, env=env, capture_output=True, text=True, check=True
    )
    rows.append(("memory for each of 10,000 tasks", f"{int(result.stdout):,} bytes", "1,024 bytes"))
    kills = ["--test", "--test-name-pattern=over kills", "test/model.test.ts"]
    subprocess.run([NODE, *kills], cwd=EXTENSION, env={**env, "KILLS": str(KILLS)}, capture_output=True, check=True)
    rows.append((f"lost or repeated changes over {KILLS} kills of the daemon", "0", "0"))
    return grid(("what", "measured", "at most"), rows)
