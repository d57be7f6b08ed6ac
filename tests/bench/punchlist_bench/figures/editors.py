"""Figures of the plugins in Neovim and Emacs. KILLS is the number of kills of the daemon."""

import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from punchlist import Client, connect
from punchlist_bench.harness import ROOT
from punchlist_bench.table import grid
from punchlist_testing import emacs, nvim
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.editor_screens import Emacs, Neovim

LISTS, TASKS, KEPT, ROUNDS = 5, 1000, 10_000, 100
KILLS = int(os.environ.get("KILLS") or 200)

LONGEST_IN_NEOVIM = """
    local uv = vim.uv or vim.loop
    local function used()
        local now = uv.getrusage()
        return (now.utime.sec + now.stime.sec) * 1e3 + (now.utime.usec + now.stime.usec) / 1e3
    end
    local last = used()
    _G.longest = 0
    uv.new_timer():start(0, 1, function()
        local now = used()
        _G.longest, last = math.max(_G.longest, now - last), now
    end)
"""
"""Records the longest processor time between two iterations of the event loop, in milliseconds."""

MEMORY_IN_NEOVIM = """
    collectgarbage() collectgarbage()
    return collectgarbage("count") * 1024"""

LONGEST_IN_EMACS = """(progn
    (setq longest 0 depth 0)
    (dolist (name '(punchlist--on-data punchlist--draw-next-slice punchlist--show))
      (advice-add name :around
        (lambda (do &rest with)
          (let ((began (float-time (get-internal-run-time))))
            (setq depth (1+ depth))
            (unwind-protect (apply do with)
              (setq depth (1- depth))
              (when (= depth 0)
                (let ((took (- (float-time (get-internal-run-time)) began)))
                  (setq longest (max longest (* 1000 took))))))))))
    nil)"""
"""Records the longest processor time of one uninterrupted call of the plugin, in milliseconds."""

MEMORY_IN_EMACS = """(let ((bytes 0))
    (garbage-collect)
    (dolist (kind (garbage-collect)) (setq bytes (+ bytes (* (nth 1 kind) (nth 2 kind)))))
    bytes)"""


def fill(client: Client, name: str, count: int) -> None:
    """Create a list of `count` tasks with different titles."""
    plan = client.conversation(name)
    for first in range(0, count, 1000):
        plan.add_many([f"{name} {first + at}" for at in range(min(1000, count - first))])


def measure_on_screen(
    editor: type[Neovim | Emacs], socket: str, directory: Path, client: Client
) -> tuple[float, float]:
    """Return median milliseconds from the key to the first paint, and from an agent's response to the screen."""
    painted: list[float] = []
    for number in range(LISTS):
        shown = editor(socket, directory / f"{editor.__name__}-{number}")
        try:
            shown.open(f"opened-{number}")
            began = time.time()
            shown.type("\r")
            painted.append((shown.shows(f"#5 opened-{number} 4") - began) * 1000)
        finally:
            shown.close()
    pushed: list[float] = []
    shown = editor(socket, directory / f"{editor.__name__}-pushed")
    try:
        shown.open("opened-0")
        shown.type("\r")
        shown.shows("#5 opened-0 4")
        plan = client.conversation("opened-0")
        for _ in range(ROUNDS):
            title = f"{random.randrange(1 << 64):016x}"
            plan.edit("2", title=title)
            answered = time.time()
            pushed.append((shown.shows(f"#2 {title}") - answered) * 1000)
        plan.edit("2", title="opened-0 1")
    finally:
        shown.close()
    return statistics.median(painted), statistics.median(pushed)


def measure_in_neovim(socket: str, directory: Path, client: Client) -> tuple[float, float, float]:
    """Return the longest call in milliseconds, the lines written for one push, and bytes for each task."""
    longest: list[float] = []
    lines = 0
    with nvim.Editor(socket, directory / "neovim") as editor:
        editor.lua(LONGEST_IN_NEOVIM)
        for number in range(LISTS):
            editor.lua("_G.longest = 0")
            editor.command(f"edit punchlist://opened-{number}")
            editor.until("vim.api.nvim_buf_line_count(0) == given[1]", TASKS)
            longest.append(editor.lua("return _G.longest"))
        before = editor.lua("return require('punchlist.view').of(0).redrawn")
        client.conversation(f"opened-{LISTS - 1}").edit("500", title="pushed")
        editor.until("vim.fn.getline(500):find('pushed', 1, true)")
        lines = editor.lua("return require('punchlist.view').of(0).redrawn") - before
    with nvim.Editor(socket, directory / "neovim") as editor:
        before = editor.lua(MEMORY_IN_NEOVIM)
        editor.lua("require('punchlist.model').of('kept')")
        editor.until("require('punchlist.model').of('kept').ready")
        return statistics.median(longest), lines, (editor.lua(MEMORY_IN_NEOVIM) - before) / KEPT


def measure_in_emacs(socket: str, directory: Path, client: Client) -> tuple[float, float, float]:
    """Return the longest call in milliseconds, the lines written for one push, and bytes for each task."""
    longest: list[float] = []
    with emacs.Editor(socket, directory / "emacs") as editor:
        editor.eval(LONGEST_IN_EMACS)
        for number in range(LISTS):
            editor.eval("(progn (setq longest 0) (punchlist--show (car given)) nil)", f"opened-{number}")
            editor.until("(= (length (lines)) (car given))", TASKS)
            longest.append(editor.eval("longest"))
        editor.eval("(setq punchlist-rendered 0)")
        client.conversation(f"opened-{LISTS - 1}").edit("500", title="pushed again")
        editor.until('(string-search "pushed again" (buffer-string))')
        lines = editor.eval("punchlist-rendered")
    with emacs.Editor(socket, directory / "emacs") as editor:
        before = editor.eval(MEMORY_IN_EMACS)
        editor.eval('(progn (punchlist--get-list "kept") nil)')
        editor.until('(punchlist--list-is-ready (punchlist--get-list "kept"))')
        return statistics.median(longest), lines, (editor.eval(MEMORY_IN_EMACS) - before) / KEPT


def survive_kills(*tests: str) -> None:
    """Run the tests that check that killing the daemon neither loses nor repeats a change."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--timeout=3600", "-k", "kills"]
    env = {**os.environ, "KILLS": str(KILLS)}
    running = [subprocess.Popen([*command, f"tests/system/editors/{test}.py"], cwd=ROOT, env=env) for test in tests]
    assert not any([process.wait() for process in running]), "see above"


def measure(*, quick: bool) -> str:
    columns: list[tuple[str, ...]] = []
    with (
        tempfile.TemporaryDirectory() as name,
        spawned_daemon(Path(name) / "daemon") as daemon,
        connect(socket=daemon.socket, autostart=False, name="agent") as client,
    ):
        for number in range(LISTS):
            fill(client, f"opened-{number}", TASKS)
        fill(client, "kept", KEPT)
        arguments = (daemon.socket, Path(name), client)
        for editor, measure_inside in ((Neovim, measure_in_neovim), (Emacs, measure_in_emacs)):
            painted, pushed = measure_on_screen(editor, *arguments)
            longest, lines, memory = measure_inside(*arguments)
            times = [f"{value:.0f} ms" for value in (painted, longest, pushed)]
            columns.append((*times, f"{lines:g}", f"{memory:,.0f} bytes"))
    load = f"The machine has {os.cpu_count()} processors; its load was {os.getloadavg()[0]:.0f} when this was measured."
    survive_kills("test_nvim", "test_emacs")
    labels = [
        ("opening 1,000 tasks: the first lines on the terminal's screen", "200 ms"),
        ("longest call during this (processor time)", "50 ms"),
        ("from the response to an agent's change to the screen, median", "50 ms"),
        ("lines drawn for a push that changes one task", "1"),
        (f"memory per task of a list of {KEPT:,}", "1,024 bytes"),
    ]
    rows = [
        (label, in_neovim, in_emacs, limit)
        for (label, limit), in_neovim, in_emacs in zip(labels, *columns, strict=True)
    ]
    rows.append((f"lost or repeated changes over {KILLS} kills of the daemon", "0", "0", "0"))
    return f"{grid(('what', 'Neovim', 'Emacs', 'at most'), rows)}\n{load}\n"
