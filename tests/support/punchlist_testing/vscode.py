"""VS Code with punchlist's extension: the workbench and extension host of code-server, displayed in Chromium."""

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
"""CSS selector for the rows of the extension's first view."""

_TREE = """() => {
    const lines = [];
    const walk = (id, depth) => {
        for (const one of punchlist.tree.getChildren(id)) {
            const item = punchlist.tree.getTreeItem(one);
            lines.push(`${'  '.repeat(depth)}${(item.contextValue ?? '').split(' ')[1] ?? ''} ${item.label}`);
            if (!one.startsWith('more:')) walk(one, depth + 1);
        }
    };
    walk(undefined, 0);
    return lines;
}"""

START_S = 60.0
"""Timeout for the start of VS Code, in seconds."""

ANSWER_S = 30.0
"""Timeout for one piece of JavaScript, in seconds."""


def is_installed() -> bool:
    """Return whether the extension, code-server, Node, Playwright and Chromium are installed."""
    parts = (VSIX, _SERVER, NODE)
    return all(map(Path.exists, parts)) and has_package("playwright") and _chromium() is not None


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def chromium() -> Generator[Any]:
    """Run the system's Chromium. Only one can run at a time."""
    with import_module("playwright.sync_api").sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=_chromium(), args=arguments)
        yield browser
        browser.close()


class Editor:
    """A VS Code server with punchlist's extension; `window` opens windows on it.

    Args:
        browser: Browser for its windows, from `chromium`.
        socket: Path of the daemon's socket, which may not exist yet.
        directory: Parent of all its files.
        env: Additional environment variables of the extension host.
        agents: Whether to enable agent mode.
    """

    def __init__(
        self, browser: Any, socket: str, directory: Path, env: dict[str, str] | None = None, *, agents: bool = False
    ) -> None:
        self._browser = browser
        self._directory = directory
        home = directory / "home"
        settings = directory / "data" / "User"
        for folder in (home, settings):
            folder.mkdir(parents=True, exist_ok=True)
        preferences = {
            "workbench.startupEditor": "none",
            "workbench.secondarySideBar.defaultVisibility": "hidden",
            "window.dialogStyle": "custom",
            "security.workspace.trust.enabled": False,
            "telemetry.telemetryLevel": "off",
            "chat.disableAIFeatures": not agents,
            "workbench.colorTheme": "Default Dark Modern",
        }
        (settings / "settings.json").write_text(json.dumps(preferences))
        self._driver_socket = _listen(directory / "driver.sock")
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
        for package in (VSIX, _pack_driver(directory)):
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
        self._url = self._wait_for_url()
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
        self._driver_socket.close()
        self._log.close()

    def window(self, folder: Path | None = None) -> "Window":
        """Open a window, with or without a folder, and wait until the extension's test driver has connected."""
        page = self._browser.new_context(viewport={"width": 1100, "height": 700}).new_page()
        page.set_default_timeout(START_S * 1000)
        page.goto(self._url + (f"?folder={folder}" if folder else "?ew=true"))
        page.wait_for_selector(".monaco-workbench")
        # A thread of Playwright's driver serves the browser, so blocking here doesn't stop it.
        connection, _ = self._driver_socket.accept()
        window = Window(page, connection)
        self._windows.append(window)
        return window

    def _run(self, *arguments: str) -> None:
        command = [str(NODE), str(_SERVER / "out/node/entry.js"), *self._options, *arguments]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def _wait_for_url(self) -> str:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if match := re.search(rb"listening on (http://[\d.:]+)", line):
                return match[1].decode() + "/"
        raise AssertionError((self._directory / "server.log").read_text(errors="replace"))


class Window:
    """A window of VS Code: the browser page, and JavaScript that runs in the extension host."""

    def __init__(self, page: Any, connection: socket.socket) -> None:
        self.page = page
        self._connection = connection
        self._connection.settimeout(ANSWER_S)
        self._answers = connection.makefile("rb")

    def js(self, code: str, *given: Any) -> Any:
        """Run JavaScript, which can use `vscode`, `punchlist` (the window) and `given`; return its result."""
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
        """Run one of the extension's commands and wait for its end; use `begin` if it asks the user something."""
        return self.js("await vscode.commands.executeCommand('punchlist.' + given[0], ...given[1])", command, given)

    def begin(self, command: str, *given: Any) -> None:
        """Start one of the extension's commands without waiting for its end."""
        self.js("void vscode.commands.executeCommand('punchlist.' + given[0], ...given[1])", command, given)

    def open(self, name: str) -> None:
        self.run("openList", name)
        self.until("punchlist.list?.name === given[0] && punchlist.list.ready", name)

    def tree(self) -> list[str]:
        """Return the extension's tree as VS Code receives it: lines of `state #id title`, indented."""
        return self.js(f"return ({_TREE})()")

    def shows(self, lines: list[str]) -> None:
        """Wait until the tree consists of exactly these lines."""
        try:
            self.until(f"JSON.stringify(({_TREE})()) === JSON.stringify(given[0])", lines)
        except AssertionError as error:
            raise AssertionError(f"{self.tree()} is not {lines}") from error

    def rows(self) -> list[str]:
        rows = self.page.locator(TASKS).evaluate_all("all => all.map((one) => [one.dataset.index * 1, one.innerText])")
        return [" ".join(text.split()) for _, text in sorted(rows)]

    def sees(self, text: str) -> Any:
        row = self.page.locator(TASKS).filter(has_text=text).first
        row.wait_for()
        return row

    def drag(self, text: str, onto: str) -> None:
        """Drag one row onto another, once no row has changed for longer than VS Code's debounce time."""
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


def _listen(path: Path) -> socket.socket:
    """Return a listening Unix socket for the test driver."""
    listener = socket.socket(socket.AF_UNIX)
    listener.settimeout(START_S)
    listener.bind(str(path))
    listener.listen()
    return listener


def _pack_driver(directory: Path) -> Path:
    path = directory / "driver.vsix"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("extension.vsixmanifest", _MANIFEST)
        for file in _DRIVER.iterdir():
            archive.write(file, f"extension/{file.name}")
    return path
