"""The command lines in the packages for hosts and registries."""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any, cast

from punchlist_packages import shops
from punchlist_packages.hatch_build import ROOT


def list_commands() -> list[tuple[str, ...]]:
    """Return the command lines in the packages, which all begin with `punch`."""
    manifests = [json.loads(text) for path, text in shops.files().items() if path.endswith(".json")]
    found = dict.fromkeys(words for manifest in manifests for words in _walk(manifest))
    for path in (*ROOT.glob("plugins/**/*.md"), *ROOT.glob("plugins/**/*.toml")):
        for line in re.findall(r"[`{](punch [^`}]+)[`}]", path.read_text("utf-8")):
            found[tuple(shlex.split(line))] = None
    return list(found)


def _walk(value: Any) -> Iterator[tuple[str, ...]]:
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _walk(item)
    if not isinstance(value, dict):
        return
    members = cast("dict[str, Any]", value)
    if "packageArguments" in members:
        yield ("punch", *(argument["value"] for argument in members["packageArguments"]))
    elif "args" in members:
        # The bundle runs the single file with Python.
        words: list[str] = (
            members["args"] if members["command"] == "python3" else [members["command"], *members["args"]]
        )
        yield ("punch", *(re.sub(r"^\$\{user_config\..+\}$", "default", word) for word in words[1:]))
    elif isinstance(command := members.get("command"), str):
        yield tuple(shlex.split(command))
    else:
        for member in members.values():
            yield from _walk(member)
