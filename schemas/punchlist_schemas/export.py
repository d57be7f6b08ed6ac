"""Writes the contract as files for readers in other languages: `python -m punchlist_schemas.export [--check]`."""

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from punchlist_schemas.discover import definitions, errors, openrpc
from punchlist_schemas.events import Recorded
from punchlist_schemas.things import Conversation, Message, Task

_SCHEMA = "https://json-schema.org/draft/2020-12/schema"


def documents() -> dict[str, bytes]:
    """Every generated file: its name and its whole content."""
    return {
        "openrpc.json": _file(openrpc()),
        "events.schema.json": _file(_schema("An event as it is stored and pushed", [Recorded])),
        "things.schema.json": _file(_schema("The nouns of the contract", [Task, Conversation, Message])),
        "errors.json": _file(errors()),
    }


def stale(folder: Path) -> list[str]:
    """Names of the files in `folder` that are missing or differ in any byte from what would be written."""
    return [
        name
        for name, content in documents().items()
        if not (path := folder / name).exists() or path.read_bytes() != content
    ]


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or with `--check` only compares them: 1 if any is stale."""
    parser = argparse.ArgumentParser(prog="python -m punchlist_schemas.export", description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, name the stale files")
    parser.add_argument("--out", type=Path, default=Path("schemas/json"), help="folder (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.check:
        names = stale(options.out)
        for name in names:
            print(f"stale: {options.out / name}", file=sys.stderr)
        return 1 if names else 0
    options.out.mkdir(parents=True, exist_ok=True)
    for name, content in documents().items():
        (options.out / name).write_bytes(content)
    return 0


def _file(value: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _schema(title: str, types: list[type[msgspec.Struct]]) -> dict[str, Any]:
    choices = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in types]
    return {"$schema": _SCHEMA, "title": title, "anyOf": choices, "$defs": definitions(types, "#/$defs/")}


if __name__ == "__main__":
    sys.exit(main())
