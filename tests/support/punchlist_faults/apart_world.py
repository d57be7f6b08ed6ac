"""The world of `apart`: three servers, configured by `punch space server`, and three daemons, each on its own host.

The servers store their data on disks whose power can be cut.
"""

import contextlib
import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from punchlist_apps.cli.installing.space_server import Server, build_configuration, create_login, create_secret
from punchlist_faults.apart_hosts import Hosts
from punchlist_faults.apart_work import LIST
from punchlist_faults.mounts import Disk
from punchlist_faults.options import Violation, need
from punchlist_faults.process import Daemon
from punchlist_testing.authority import Authority
from punchlist_testing.daemon import Raw
from punchlist_testing.nats_server import NatsServer

SPACE = "team"
SERVERS = ("n1", "n2", "n3")
MACHINES = ("ann", "bob", "eve")
START_S = 40.0


class World:
    """Servers and machines, not started yet.

    Args:
        place: Empty directory.
        bug: Fault of `launch` that is injected into all daemons.
    """

    def __init__(self, place: Path, bug: str = "") -> None:
        self.place = place
        self.hosts = Hosts()
        addresses = [self.hosts.add(name) for name in SERVERS]
        for name in MACHINES:
            self.hosts.add(name)
        authority = Authority(place / "ca")
        logins = {name: create_login(name, "member") for name in (*MACHINES, "judge")}
        self._disks: dict[str, Disk] = {}
        servers: list[Server] = []
        for name, address in zip(SERVERS, addresses, strict=True):
            (place / name).mkdir()
            self._disks[name] = Disk(place / name)
            self._disks[name].mount()
            cert, key = authority.sign(name, address)
            ca, store = str(authority.certificate), str(self._disks[name].place / "js")
            servers.append(Server(address, str(cert), str(key), ca, store))
        secret = create_secret()
        self.servers: dict[str, Any] = {}
        for number, (name, address) in enumerate(zip(SERVERS, addresses, strict=True)):
            text = build_configuration(SPACE, list(logins.values()), servers, number, secret)
            text = text.replace('http: "127.0.0.1:8222"', f'http: "{address}:8222"')
            self.servers[name] = NatsServer(
                place / name / "nats", text, host=address, whole=True, wrap=self.hosts.command(name)
            )
        self.ca, self.creds = str(authority.certificate), dict[str, str]()
        for name, credentials in logins.items():
            path = place / f"{name}.creds"
            path.touch(0o600)
            path.write_text(credentials.creds)
            self.creds[name] = str(path)
        self.daemons = self._make_daemons(bug)

    def _make_daemons(self, bug: str) -> dict[str, Daemon]:
        daemons: dict[str, Daemon] = {}
        for name in MACHINES:
            (self.place / name).mkdir()
            daemon = daemons[name] = Daemon(self.place / name)
            daemon.host = self.hosts.command(name)
            daemon.options = ("--grace", "1")
            daemon.env = {"PUNCHLIST_MACHINE": name}
            daemon.plant = (bug,) if bug else ()
        return daemons

    def urls(self, first: int = 0) -> tuple[str, ...]:
        """Return the servers' URLs, beginning with the server at index `first`."""
        names = SERVERS[first:] + SERVERS[:first]
        return tuple(f"tls://{self.hosts.address[name]}" for name in names)

    def start(self) -> None:
        self._start_servers()
        for number, name in enumerate(MACHINES):
            self.daemons[name].start()
            space = {"space": SPACE, "urls": self.urls(number), "creds": self.creds[name], "ca": self.ca}
            self._insist(name, "space.add", **space)
            if not number:
                self._insist(name, "task.add", conversation=LIST, title="the first one", key="first")
            self._insist(name, "list.join" if number else "list.share", conversation=LIST, space=SPACE)

    def _start_servers(self) -> None:
        starting = [threading.Thread(target=server.start) for server in self.servers.values()]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()

    def _insist(self, name: str, method: str, **params: Any) -> None:
        """Retry a call until it succeeds, because calls fail while servers elect a leader."""
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.closing(Raw(self.daemons[name].socket)) as link:
                link.sock.settimeout(START_S)
                answer = link.call(method, **params)
            if "result" in answer:
                return
            need(time.monotonic() < deadline, f"{method} at {name}: {answer}")
            time.sleep(0.2)

    def leader(self) -> str | None:
        """Return the server that leads the space, if one does."""
        for name in SERVERS:
            url = f"http://{self.hosts.address[name]}:8222/jsz?streams=true"
            with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(url, timeout=0.5) as answer:
                for account in json.load(answer).get("account_details", ()):
                    for stream in account.get("stream_detail", ()):
                        led = stream.get("cluster", {}).get("leader", "")
                        if stream["name"] == f"punch-{SPACE}" and led:
                            return SERVERS[int(led.rpartition("-")[2]) - 1]
        return None

    def served_by(self, server: str) -> list[str]:
        """Return the machines that are connected to a server."""
        machines: list[str] = []
        for name, daemon in self.daemons.items():
            with contextlib.suppress(OSError, EOFError, KeyError), contextlib.closing(Raw(daemon.socket)) as link:
                link.sock.settimeout(1)
                (space,) = link.call("space.list")["result"]["spaces"]
                if self.hosts.address[server] in space["server"]:
                    machines.append(name)
        return machines

    # Faults

    def kill(self, name: str) -> None:
        (self.servers.get(name) or self.daemons[name]).kill()

    def revive(self, name: str) -> None:
        (self.servers.get(name) or self.daemons[name]).start()

    def pause(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid(name), os.WSTOPPED | os.WNOWAIT)

    def resume(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGCONT)

    def pid(self, name: str) -> int:
        process = (self.servers.get(name) or self.daemons[name]).process
        assert process is not None, "start it first"
        return process.pid

    def power_off(self, *names: str) -> None:
        """Cut the power of servers. They are paused before their disks lose what was not flushed."""
        for name in names:
            self.pause(name)
        for name in names:
            self._disks[name].cut()
        for name in names:
            self.servers[name].kill()

    def power_on(self, *names: str) -> None:
        for name in names:
            self._disks[name].unmount()
            self._disks[name].mount()
            self.servers[name].start()

    def check_running(self) -> None:
        for name in (*self.servers, *MACHINES):
            process = (self.servers.get(name) or self.daemons[name]).process
            if process is None or process.poll() is not None:
                output = self.servers[name].log() if name in self.servers else self.daemons[name].output()
                raise Violation(f"{name} ended by itself: {process and process.returncode}\n{output[-3000:]}")

    def end(self) -> None:
        for process in (*self.servers.values(), *self.daemons.values()):
            process.kill()
        for disk in self._disks.values():
            with contextlib.suppress(Exception):
                disk.unmount()
        self.hosts.end()


@contextmanager
def world(place: Path, kind: type[World], bug: str) -> Generator[World]:
    instance = kind(place, bug)
    try:
        instance.start()
        yield instance
    finally:
        instance.end()
