import contextlib
import json
import signal
import socket
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect
from punchlist_testing.daemon import spawned_daemon
from punchlist_testing.optional import require_package
from punchlist_testing.served_mcp import Served, arguments, environment

require_package("mcp")
mcp: Any = import_module("mcp")


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_stdio_host_recovers_with_the_daemon(mode: str, tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon:
        server = mcp.StdioServerParameters(
            command=sys.executable, args=arguments(daemon, "--dialect", "claude"), env=environment()
        )
        with anyio.fail_after(50):
            async with mcp.Client(server, mode=mode) as session:
                made = await session.call_tool("TaskCreate", {"subject": "One", "description": "d"})
                assert not made.is_error
                daemon.restart()
                listed = await session.call_tool("TaskList", {})
                assert listed.content[0].text == "☐ #1: One [pending]"


@pytest.fixture
def served(tmp_path: Path) -> Any:
    with spawned_daemon(tmp_path) as daemon:
        served = Served(daemon)
        try:
            with connect(socket=daemon.socket, autostart=False) as client:
                client.conversation("work").add("Secret canary")
            yield served
        finally:
            served.process.send_signal(signal.SIGTERM)
            _, errors = served.process.communicate(timeout=20)
            assert served.token.encode() not in errors


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_http_host_with_token_is_served(mode: str, served: Served) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {served.token}"}
    with anyio.fail_after(30):
        async with httpx2.AsyncClient(headers=headers) as http:
            transport = streamable_http_client(f"http://127.0.0.1:{served.port}/mcp", http_client=http)
            async with mcp.Client(transport, mode=mode) as session:
                listed = await session.call_tool("tasks", {})
                assert "Secret canary" in listed.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_token_reads_only_its_users_lists(mode: str, tmp_path: Path) -> None:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    tokens = {"ann": "ann-" * 8, "bob": "bob-" * 8}
    table = tmp_path / "users.json"
    table.touch(mode=0o600)
    table.write_text(json.dumps({token: [user] for user, token in tokens.items()}))
    with spawned_daemon(tmp_path) as daemon:
        served = Served(daemon, "--dialect", "todo-v1", "--users", str(table))
        try:
            for user, other in (("bob", "ann"), ("ann", "bob")):
                headers = {"Authorization": f"Bearer {tokens[user]}"}
                with anyio.fail_after(30):
                    async with httpx2.AsyncClient(headers=headers) as http:
                        transport = streamable_http_client(f"http://127.0.0.1:{served.port}/mcp", http_client=http)
                        async with mcp.Client(transport, mode=mode) as session:
                            made = await session.call_tool("add_task", {"user_id": user, "title": f"of {user}"})
                            assert not made.is_error
                            refused = await session.call_tool("list_tasks", {"user_id": other})
                            assert refused.is_error and f"of {other}" not in refused.content[0].text
                            resources = await session.list_resources()
                            assert [one.name for one in resources.resources] == [f"of:{user}:work"]
                            for address in (f"punchlist://of:{other}:work/tasks", "punchlist://nowhere/tasks"):
                                with contextlib.suppress(mcp.MCPError):
                                    read = await session.read_resource(address)
                                    assert json.loads(read.contents[0].text)["tasks"] == []
            assert served.ask("POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{served.port}").startswith(b"HTTP/1.1 401")
        finally:
            served.process.send_signal(signal.SIGTERM)
            _, errors = served.process.communicate(timeout=20)
            assert b"ann-ann" not in errors


def test_forged_requests_reach_no_handler(served: Served) -> None:
    host, token = f"Host: 127.0.0.1:{served.port}", f"Authorization: Bearer {served.token}"
    kind = "Content-Type: application/json"
    refused = {
        ("POST /mcp HTTP/1.1", host, kind): b"401",
        ("POST /mcp HTTP/1.1", "Host: evil.example", token, kind): b"421",
        ("POST /mcp HTTP/1.1", host, "Host: evil.example", token, kind): b"4",
        ("POST /mcp HTTP/1.0", token, kind): b"421",
        (f"POST http://evil.example:{served.port}/mcp HTTP/1.1", host, token, kind): b"4",
        ("POST /mcp HTTP/1.1", host, token, kind, "Origin: http://localhost.evil"): b"403",
        ("POST /mcp HTTP/1.1", host, token, "Content-Type: text/plain"): b"415",
        ("OPTIONS /mcp HTTP/1.1", host, token): b"405",
        ("GET / HTTP/1.1", host, token): b"404",
        ("GET /mcp HTTP/1.1", host, "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"): b"4",
    }
    for lines, status in refused.items():
        answer = served.ask(*lines, "Content-Length: 0")
        assert answer.split(b" ", 1)[1].startswith(status), (lines, answer)
        assert b"canary" not in answer
        assert b"access-control" not in answer.lower()


def test_server_listens_only_on_loopback(served: Served) -> None:
    found = subprocess.run(["ss", "-ltnH"], capture_output=True, text=True, check=False).stdout
    places = [line.split()[3] for line in found.splitlines() if line.split()[3].endswith(f":{served.port}")]
    assert set(places) <= {f"127.0.0.1:{served.port}", f"[::1]:{served.port}"}


ACTIVATE = """
import os, sys
os.dup2(int(sys.argv[1]), 3, inheritable=True)
os.environ |= {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1"}
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.parametrize(("address", "serves"), [("127.0.0.1", True), ("0.0.0.0", False)])
def test_systemd_socket_must_be_on_loopback(address: str, serves: bool, tmp_path: Path) -> None:
    with spawned_daemon(tmp_path) as daemon, socket.create_server((address, 0)) as given:
        port = given.getsockname()[1]
        more = ["--http", "--port", str(port), "--token-file", str(tmp_path / "token")]
        command = [sys.executable, "-c", ACTIVATE, str(given.fileno()), *arguments(daemon, *more)]
        process = subprocess.Popen(command, env=environment(), pass_fds=[given.fileno()], stderr=subprocess.PIPE)
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as link:
                link.settimeout(20)
                link.sendall(f"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
                if serves:
                    assert b"401" in link.recv(100)
                else:
                    assert process.wait(20) != 0
        finally:
            process.kill()
            process.communicate(timeout=20)
