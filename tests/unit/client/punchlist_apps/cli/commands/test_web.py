"""`punch web` as a program: links, sockets and shutdown."""

import http.client
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import segno

from punchlist_apps.cli.printing import qr_code
from punchlist_apps.common import extras
from punchlist_apps.common.http.codes import MAX_TRIES, Codes
from punchlist_apps.common.http.keys import Keys, Scope
from punchlist_apps.common.http.secret_file import SecretFile
from punchlist_testing.terminal import spawned, terminal


def test_link_signs_in_one_browser_with_scope(run: Any, home: Path) -> None:
    outcome = run("web", "--link", "--read-only", "--only", "plan", "--for", "2h", "--port", "9000")
    assert outcome.code == 0
    address, _, ticket = outcome.out.strip().partition("#ticket=")
    assert address == "http://127.0.0.1:9000/"
    keys = Keys(SecretFile(str(home / "data" / "web.token")), home / "data" / "web.used")
    session = keys.redeem(ticket)
    assert session is not None and session.scope == Scope("ro", "plan")
    named = run("web", "--link", "--only", "plan", "--as", "ann").out.strip().partition("#ticket=")[2]
    assert (found := keys.redeem(named)) is not None and found.scope == Scope("rw", "plan", None, "ann")
    names = set[str]()
    for _ in range(2):
        found = keys.redeem(run("web", "--link", "--only", "plan").out.strip().partition("#ticket=")[2])
        assert found is not None and str(found.scope.name).startswith("web/")
        names.add(str(found.scope.name))
    assert len(names) == 2
    found = keys.redeem(run("web", "--link", "--user", "eve").out.strip().partition("#ticket=")[2])
    assert found is not None and str(found.scope.name).startswith("web/")
    again = run("web", "--link").out.strip().partition("#ticket=")[2]
    token = home / "data" / "web.token"
    secret = token.read_text()
    assert run("web", "--revoke").lines == [
        "all links and sign-ins are invalid now",
        f"the new secret for scripts is in {token}",
    ]
    assert token.read_text() != secret
    assert keys.redeem(again) is None and keys.read_scope(session.token.encode()) is None


def test_code_signs_in_with_scope_and_waits_after_wrong_ones(run: Any, home: Path) -> None:
    codes = Codes(Keys(SecretFile(str(home / "data" / "web.token")), home / "data" / "web.used"))
    outcome = run("web", "--code", "--only", "plan", "--as", "ann")
    session = codes.redeem(outcome.out.strip())
    assert session is not None and session.scope == Scope("rw", "plan", None, "ann")
    code = run("web", "--code").out.strip()
    for _ in range(MAX_TRIES):
        assert codes.redeem("none") is None
    outcome = run("web", "--code")
    assert (outcome.code, outcome.out) == (1, "") and "3 wrong codes were entered" in outcome.err
    assert codes.redeem(code) is None


def test_link_names_the_allowed_host(run: Any) -> None:
    outcome = run("web", "--link", "--allow-host", "box.local", "--port", "9000")
    assert outcome.out.startswith("http://box.local:9000/#ticket=")


def test_link_is_drawn_only_in_a_terminal(run: Any) -> None:
    assert len(run("web", "--link", "--qr").lines) == 1
    with terminal("web", "--link", "--qr", env={"TERM": "xterm-256color"}) as screen:
        screen.wait_for("#ticket=")
        screen.wait_for("\x1b[38;5;16;48;5;231m")


def test_drawn_code_has_the_modules_of_the_link() -> None:
    link = "http://127.0.0.1:8322/#ticket=abc"
    lines = [line.removeprefix("\x1b[38;5;16;48;5;231m").removesuffix("\x1b[0m") for line in qr_code.draw(link)]
    halves = [[" ▄▀█".index(sign) for sign in line] for line in lines]
    drawn = [bytes(half >> shift & 1 for half in line) for line in halves for shift in (1, 0)]
    expected = [bytes(row) for row in segno.make_qr(link, error="l", boost_error=False).matrix_iter(border=2)]
    assert drawn[: len(expected)] == expected


def test_link_to_unserved_port_is_noted(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as served:
        port = str(served.getsockname()[1])
        assert run("web", "--link", "--port", port).err == ""
    outcome = run("web", "--link", "--port", port)
    assert (outcome.code, outcome.err.partition(";")[0]) == (0, f"nothing listens on port {port} yet")


def test_invalid_link_options_are_usage_errors(run: Any) -> None:
    for words in (
        ("--read-only",),
        ("--only", "plan"),
        ("--user", "ann"),
        ("--as", "ann"),
        ("--link", "--as", ""),
        ("--link", "--as", "a" * 129),
        ("--link", "--as", "a\nb"),
        ("--link", "--unix", "/tmp/s"),
        ("--qr",),
    ):
        assert run("web", *words).code == 2


def test_missing_extra_is_reported_with_command(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    outcome = run("web")
    assert outcome.code == 78
    assert outcome.err == f"error: {extras.WEB_MISSING}\n  {extras.build_install_command('web')}\n"


@pytest.mark.usefixtures("daemon")
def test_an_unusable_secret_is_reported(home: Path) -> None:
    token, path = home / "data" / "web.token", str(home / "web.sock")
    SecretFile(str(token))
    token.chmod(0o644)
    with terminal("web", "--unix", path) as screen:
        screen.wait_for(f"punch: all clients are rejected: other users may read or write {token}; chmod 600 {token}")
        screen.wait_for("listening on")
        assert _status(path, token) == 401
        token.chmod(0o600)
        assert _status(path, token) == 200
        secret = token.rename(home / "kept")
        assert _status(path, secret) == 401
        screen.wait_for(f"all clients are rejected: {token} is missing; restart the server to make a new one")


def test_unusable_secret_signs_no_link(run: Any, home: Path) -> None:
    token = home / "data" / "web.token"
    SecretFile(str(token))
    token.chmod(0o644)
    outcome = run("web", "--link")
    assert (outcome.code, outcome.out) == (78, "")
    assert f"chmod 600 {token}" in outcome.err


def _status(path: str, token: Path) -> int:
    connection = Over(path)
    headers = {"Authorization": f"Bearer {token.read_text().strip()}"}
    connection.request("GET", "/api/v1/conversations", headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


def test_port_in_use_is_reported_with_advice(run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        outcome = run("web", "--port", str(port))
    assert outcome.code == 1
    assert f"error: port {port}: in use by another program; use another with --port\n" in outcome.err


class Over(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self._path)


def test_unix_socket_serves_owner_until_signal(home: Path) -> None:
    path = str(home / "web.sock")
    with terminal("web", "--unix", path) as screen:
        screen.wait_for("listening on")
        assert os.stat(path).st_mode & 0o777 == 0o600
        connection = Over(path)
        connection.request("GET", "/api/v1/openapi.json")
        assert connection.getresponse().status == 200
        connection.close()
        screen.process.send_signal(signal.SIGTERM)
        screen.process.wait(10)


def test_idle_server_exits(home: Path) -> None:
    with terminal("web", "--unix", str(home / "web.sock"), "--idle-exit", "50ms") as screen:
        assert screen.process.wait(10) == 0


def test_browser_arguments_contain_no_ticket(home: Path) -> None:
    log = home / "told"
    os.mkfifo(log)
    (browser := home / "browser").write_text(f'#!/bin/sh\necho "$@" > {log}\n')
    browser.chmod(0o700)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with terminal("web", "--port", port, "--open", env={"BROWSER": str(browser)}):
        given = log.read_text().strip()
    assert given == (home / "data" / "web.html").as_uri()
    assert (home / "data" / "web.html").stat().st_mode & 0o777 == 0o600
    assert f"url=http://127.0.0.1:{port}/#ticket=" in (home / "data" / "web.html").read_text()


def test_verbose_server_logs_chat_tools(punch: Any, home: Path) -> None:
    punch("add", "tea")
    with spawned("web", "--verbose", "--unix", str(home / "web.sock")) as server:
        assert server.stderr is not None
        assert "tools available to the agent (the rules): [create_todo_task, " in server.stderr.readline()
