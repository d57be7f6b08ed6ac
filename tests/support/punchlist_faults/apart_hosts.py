"""Hosts in their own network: namespaces on one bridge, which can be cut off from each other.

Everything is inside the program's own namespaces (`mounts.enter`), and disappears with them.
"""

import subprocess
from collections.abc import Iterable
from pathlib import Path

NET = "10.9.0"
OUTSIDE = f"{NET}.1"


def _do(*command: str, check: bool = True) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


class Hosts:
    """Hosts with one address each. Every host can reach every other one until they are cut off from each other."""

    def __init__(self) -> None:
        self.address: dict[str, str] = {}
        Path("/run/netns").mkdir(exist_ok=True)
        _do("mount", "-t", "tmpfs", "none", "/run/netns")
        _do("ip", "link", "set", "lo", "up")
        _do("ip", "link", "add", "bridge0", "type", "bridge")
        _do("ip", "address", "add", f"{OUTSIDE}/24", "dev", "bridge0")
        _do("ip", "link", "set", "bridge0", "up")

    def add(self, name: str) -> str:
        address = self.address[name] = f"{NET}.{10 + len(self.address)}"
        _do("ip", "netns", "add", name)
        _do("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
        _do("ip", "link", "set", f"to-{name}", "master", "bridge0", "up")
        _do("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        _do("ip", "-n", name, "link", "set", "lo", "up")
        _do("ip", "-n", name, "link", "set", "eth0", "up")
        return address

    def end(self) -> None:
        for name in self.address:
            # Deleting the namespace would remove the link only some time later.
            _do("ip", "link", "delete", f"to-{name}", check=False)
            _do("ip", "netns", "delete", name, check=False)
        _do("ip", "link", "delete", "bridge0", check=False)
        _do("umount", "/run/netns", check=False)

    def command(self, name: str) -> tuple[str, ...]:
        """Return the command prefix that runs a command on a host without changing its process id."""
        return ("nsenter", f"--net=/run/netns/{name}", "--")

    def cut(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Drop all packets between these hosts in both directions; connections stay open.

        Each host gets a wrong link-layer address for the other.
        """
        for left, right in pairs:
            self.deafen(left, [right])
            self.deafen(right, [left])

    def deafen(self, name: str, others: Iterable[str]) -> None:
        """Drop the packets that other hosts send to a host, but not those that it sends. `join` ends this too."""
        lost = ("lladdr", "02:00:00:00:00:ff", "nud", "permanent", "dev", "eth0")
        for other in others:
            _do("ip", "-n", other, "neighbour", "replace", self.address[name], *lost)

    def join(self, pairs: Iterable[tuple[str, str]]) -> None:
        for left, right in pairs:
            for host, peer in ((left, right), (right, left)):
                _do("ip", "-n", host, "neighbour", "delete", self.address[peer], "dev", "eth0", check=False)

    def delay(self, name: str, milliseconds: int) -> bool:
        """Delay the packets that a host sends (0: no delay); return False if the kernel can't."""
        rule = ["replace", "root", "netem", "delay", f"{milliseconds}ms"] if milliseconds else ["del", "root"]
        command = ["tc", "-n", name, "qdisc", rule[0], "dev", "eth0", *rule[1:]]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
