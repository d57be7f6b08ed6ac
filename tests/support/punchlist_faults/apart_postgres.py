"""The world of `apart` over PostgreSQL: one server on a disk whose power can be cut, and three daemons on hosts."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from punchlist_apps.cli.installing.space_postgres import create_login
from punchlist_faults.apart_hosts import Hosts
from punchlist_faults.apart_world import MACHINES, SPACE, World
from punchlist_faults.mounts import Disk
from punchlist_testing.authority import Authority
from punchlist_testing.postgres_server import DATABASE, PostgresServer

SERVER = "n1"


class PostgresWorld(World):
    """A server and machines, not started yet; see `World`."""

    def __init__(self, place: Path, bug: str = "") -> None:
        self.place = place
        self.hosts = Hosts()
        address = self.hosts.add(SERVER)
        for name in MACHINES:
            self.hosts.add(name)
        (place / SERVER).mkdir()
        for parent in (place, place / SERVER):
            parent.chmod(0o711)  # the server runs as another user
        self._disks = {SERVER: Disk(place / SERVER, 512)}
        self._disks[SERVER].mount()
        kept = self._disks[SERVER].place / "kept"
        kept.mkdir()
        self.server = PostgresServer("ssl = on", host=address, wrap=self.hosts.command(SERVER), place=kept)
        self.servers = {SERVER: self.server}
        authority = Authority(place / "ca")
        for path, name in zip(authority.sign(SERVER, address), ("server.crt", "server.key"), strict=True):
            there = self.server.data / name
            there.write_bytes(path.read_bytes())
            there.chmod(0o600)
            os.chown(there, self.server.data.stat().st_uid, self.server.data.stat().st_gid)
        self._disks[SERVER].flush()
        self.ca, self.creds = str(authority.certificate), dict[str, str]()
        self._logins = [create_login(name, "member") for name in (*MACHINES, "judge")]
        for member in self._logins:
            path = place / f"{member.name}.creds"
            path.touch(0o600)
            path.write_text(member.format_creds([address], DATABASE))
            self.creds[member.name] = str(path)
        self.daemons = self._make_daemons(bug)
        self._urls = {member.name: self.server.url(member.name) for member in self._logins}

    def urls(self, first: int = 0) -> tuple[str, ...]:
        return (self._urls[MACHINES[first]],)

    def _start_servers(self) -> None:
        self.server.start()
        self.server.add(SPACE, *self._logins)
        self.creds["judge"] = self.creds[MACHINES[0]]  # the judge uses the same server address

    def leader(self) -> str | None:
        return SERVER

    def served_by(self, server: str) -> list[str]:
        return list(MACHINES)

    def pause(self, name: str) -> None:
        self.server.pause() if name == SERVER else super().pause(name)

    def resume(self, name: str) -> None:
        self.server.resume() if name == SERVER else super().resume(name)


def terminate(world: World, _name: str) -> Callable[[], None]:
    """Make the server end the connections of all members; it accepts new ones immediately."""
    process = world.servers[SERVER].process
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has already ended
            if f" {DATABASE} ".encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGTERM)  # as pg_terminate_backend does
    return lambda: None
