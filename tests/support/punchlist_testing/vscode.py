"""A real VS Code: the workbench and extension host of code-server, shown by Chromium, with our extension installed."""

import json
import os
import re
import shutil
import socket
import subprocess
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from punchlist_testing.optional import has_package

ROOT = Path(__file__).resolve().parents[3]
EXTENSION = ROOT / "editors" / "vscode"
VSIX = EXTENSION / "punchlist.vsix"
_DRIVER = ROOT / "tests" / "support" / "vscode_driver"
_SERVER = ROOT / "build" / "editors" / "server" / "node_modules" / "code-server"
NODE = ROOT / "build" / "node" / "node"
_MANIFEST = (
    '<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011"><Metadata>'
    '<Identity Language="en-US" Id="punchlist-driver" Version="0.0.1" Publisher="punchlist"/></Metadata>'
    "</PackageManifest>"
)

TASKS = "[id='workbench.view.extension.punchlist'] .pane:first-of-type .monaco-list-row"
"""The rows of our first view."""

_TREE = """() => {
    const lines = [];
    const walk = (id, depth) => {
        for (const one of punchlist.base.tree.getChildren(id)) {
            const item = punchlist.base.tree.getTreeItem(one);
            lines.push(`${'  '.repeat(depth)}${(item.contextValue ?? '').split(' ')[1] ?? ''} ${item.label}`);
            if (!one.startsWith('more:')) walk(one, depth + 1);
        }
    };
    walk(undefined, 0);
    return lines;
}"""

START_S = 60.0
"""How long VS Code may take to start, in seconds."""

ANSWER_S = 30.0
"""How long one piece of code may take, in seconds."""


def is_installed() -> bool:
    """Return whether everything that a real VS Code needs is here."""
    parts = (VSIX, _SERVER, NODE)
    return all(map(Path.exists, parts)) and has_package("playwright") and _chromium() is not None


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def chromium() -> Generator[Any]:
    """The system's Chromium; there can be one at a time."""
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        yield browser
        browser.close()


class Editor:
    """One server of VS Code with our extension and no other; `window` opens windows on it.

    Args:
        browser: What shows its windows: `chromium` starts one.
        socket: Where the daemon listens, or will.
        directory: What the server keeps goes below it.
        env: Further variables of the extension host.
        agents: Whether agent mode is there.
    """

    def __init__(
        self, browser: Any, socket: str, directory: Path, env: dict[str, str] | None = None, *, agents: bool = False
    ) -> None:
        self._browser = browser
        self._directory = directory
        home = directory / "home"
        settings = directory / "data" / "User"
        for made in (home, settings):
            made.mkdir(parents=True, exist_ok=True)
        quiet = {
            "workbench.startupEditor": "none",
            "workbench.secondarySideBar.defaultVisibility": "hidden",
            "window.dialogStyle": "custom",
            "security.workspace.trust.enabled": False,
            "telemetry.telemetryLevel": "off",
            "chat.disableAIFeatures": not agents,
            "workbench.colorTheme": "Default Dark Modern",
        }
        (settings / "settings.json").write_text(json.dumps(quiet))
        self._driver = socket_listening(directory / "driver.sock")
        self._env = {
            "HOME": str(home),
            "PATH": f"{NODE.parent}:{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "PUNCHLIST_SOCKET": socket,
            "PUNCHLIST_AUTOSTART": "0",
            "PUNCHLIST_TEST_DRIVER": str(directory / "driver.sock"),
            **(env or {}),
        }
        self._options = [
            *("--user-data-dir", str(directory / "data"), "--extensions-dir", str(directory / "extensions")),
            *("--config", str(directory / "config.yaml"), "--disable-telemetry", "--disable-update-check"),
        ]
        for package in (VSIX, _packed_driver(directory)):
            self._run("--install-extension", str(package))
        self._log = open(directory / "server.log", "wb")
        self._process = subprocess.Popen(
            [
                str(NODE),
                str(_SERVER / "out/node/entry.js"),
                *self._options,
                "--auth",
                "none",
                "--bind-addr",
                "127.0.0.1:0",
            ],
            cwd=directory,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        self._url = self._address()
        self._windows: list[Window] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for window in self._windows:
            window.close()
        self._process.terminate()
        self._process.communicate()
        self._driver.close()
        self._log.close()

    def window(self, folder: Path | None = None) -> "Window":
        """Open a window, with a folder or none, and wait until our extension runs in it."""
        page = self._browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
        page.set_default_timeout(START_S * 1000)
        page.goto(self._url + (f"?folder={folder}" if folder else "?ew=true"))
        page.wait_for_selector(".monaco-workbench")
        # The browser is served by a thread of Playwright's own driver: waiting here holds up nothing.
        connection, _ = self._driver.accept()
        window = Window(page, connection)
        self._windows.append(window)
        return window

    def _run(self, *arguments: str) -> None:
        command = [str(NODE), str(_SERVER / "out/node/entry.js"), *self._options, *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _address(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if found := re.search(rb"listening on (http://[\d.:]+)", line):
                return found[1].decode() + "/"
        raise AssertionError((self._directory / "server.log").read_text(errors="replace"))


class Window:
    """A window of VS Code: what a person sees in `page`, and code that runs beside the extension."""

    def __init__(self, page: Any, connection: socket.socket) -> None:
        self.page = page
        self._connection = connection
        self._connection.settimeout(ANSWER_S)
        self._answers = connection.makefile("rb")

    def js(self, code: str, *given: Any) -> Any:
        """What a piece of JavaScript returns; it has `vscode`, `punchlist` (our window) and `given`."""
        self._connection.sendall(json.dumps({"id": 1, "code": code, "given": given}).encode() + b"\n")
        answer = json.loads(self._answers.readline())
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def until(self, condition: str, *given: Any) -> None:
        code = f"""
            const ends = Date.now() + {int(ANSWER_S * 900)};
            while (!(await ({condition}))) {{
                if (Date.now() > ends) return false;
                await new Promise((done) => setTimeout(done, 5));
            }}
            return true;"""
        if not self.js(code, *given):
            raise AssertionError(f"{condition} {given}")

    def run(self, command: str, *given: Any) -> Any:
        """Run a command of ours; for one that asks a person something, use `begin`."""
        return self.js("await vscode.commands.executeCommand('punchlist.' + given[0], ...given[1])", command, given)

    def begin(self, command: str, *given: Any) -> None:
        """Run a command of ours that waits for a person."""
        self.js("void vscode.commands.executeCommand('punchlist.' + given[0], ...given[1])", command, given)

    def open(self, name: str) -> None:
        self.run("openList", name)
        self.until("punchlist.list?.name === given[0] && punchlist.list.ready", name)

    def tree(self) -> list[str]:
        """The whole tree, as our extension gives it to VS Code: `state #id title`, indented."""
        return self.js(f"return ({_TREE})()")

    def shows(self, lines: list[str]) -> None:
        """Wait until the whole tree is these lines."""
        try:
            self.until(f"JSON.stringify(({_TREE})()) === JSON.stringify(given[0])", lines)
        except AssertionError as error:
            raise AssertionError(f"{self.tree()} is not {lines}") from error

    def rows(self) -> list[str]:
        seen = self.page.locator(TASKS).evaluate_all("all => all.map((one) => [one.dataset.index * 1, one.innerText])")
        return [" ".join(text.split()) for _, text in sorted(seen)]

    def sees(self, text: str) -> Any:
        row = self.page.locator(TASKS).filter(has_text=text).first
        row.wait_for()
        return row

    def drag(self, text: str, onto: str) -> None:
        """Drag one row onto another, once no row has changed for longer than VS Code gathers changes."""
        source, target = self.sees(text), self.sees(onto)
        self.page.evaluate(
            """() => new Promise((done) => {
                let timer;
                const observer = new MutationObserver(() => restart());
                const restart = () => {
                    clearTimeout(timer);
                    timer = setTimeout(() => (observer.disconnect(), done()), 500);
                };
                const all = { subtree: true, childList: true, attributes: true };
                observer.observe(document.querySelector('.sidebar'), all);
                restart();
            })"""
        )
        source.drag_to(target)

    def close(self) -> None:
        self._answers.close()
        self._connection.close()
        self.page.context.close()


def socket_listening(path: Path) -> socket.socket:
    """A Unix socket that waits for the driver."""
    listening = socket.socket(socket.AF_UNIX)
    listening.settimeout(START_S)
    listening.bind(str(path))
    listening.listen()
    return listening


def _packed_driver(directory: Path) -> Path:
    path = directory / "driver.vsix"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("extension.vsixmanifest", _MANIFEST)
        for file in _DRIVER.iterdir():
            packed.write(file, f"extension/{file.name}")
    return path
