"""Describes the machine that the figures were measured on."""

import os
import platform
import re
import shutil
import sqlite3
import subprocess
from importlib import metadata
from pathlib import Path


def describe(place: Path) -> str:
    """Return the hardware and system, and the versions that matter for the daemon."""
    words = [
        describe_hardware(place),
        python_version(),
        f"SQLite {sqlite3.sqlite_version}",
        f"uvloop {_version('uvloop')}",
        f"msgspec {_version('msgspec')}",
        redis_version(),
    ]
    return ", ".join(words)


def describe_hardware(place: Path) -> str:
    """Return processor, cores, memory, kernel, and the file system of `place`."""
    cpu = re.search(r"model name\s*: (.*)", _read("/proc/cpuinfo"))
    memory = re.search(r"MemTotal:\s+(\d+)", _read("/proc/meminfo"))
    kind, device = filesystem(place)
    words = [
        f"{cpu[1].strip() if cpu else platform.machine()}, {os.cpu_count()} cores",
        f"{int(memory[1]) / 2**20:.0f} GiB" if memory else "",
        f"{platform.system()} {platform.release()}",
        f"{kind} on {device}",
    ]
    return ", ".join(word for word in words if word)


def filesystem(place: Path) -> tuple[str, str]:
    """Return the type and device of the file system that contains a directory."""
    mounts = (line.split()[:3] for line in _read("/proc/self/mounts").splitlines())
    parents = [(mount, kind, device) for device, mount, kind in mounts if place.resolve().is_relative_to(mount)]
    _, kind, device = max(parents, key=lambda parent: len(parent[0]), default=("", "unknown", "unknown"))
    return kind, device


def python_version() -> str:
    return f"Python {platform.python_version()}"


def node_version() -> str:
    """Return a string such as `Node 24.19.0`, or `no Node`."""
    if not (program := shutil.which("node")):
        return "no Node"
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return f"Node {output.strip().removeprefix('v')}"


def redis_version() -> str:
    """Return a string such as `Redis 7.0.15`, or `no Redis`."""
    if not (program := shutil.which("redis-server")):
        return "no Redis"
    output = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"v=(\S+)", output)
    return f"Redis {version[1] if version else '?'}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
