"""Programs of others that tests play: an MCP server under the name of `punch`, and hosts' own commands."""

import sys
from pathlib import Path

SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    result = {"tools": [{"name": "plan"}]} if asked["method"] == "tools/list" else {"protocolVersion": "2025-06-18"}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
"""Answers `initialize` and `tools/list`."""

CLAUDE = """
import json, os, sys
path = os.path.join(os.environ["HOME"], ".claude.json")
said = json.load(open(path)) if os.path.exists(path) else {"machineID": 1}
servers = said.setdefault("mcpServers", {})
open(os.path.join(os.environ["HOME"], "asked"), "a").write(" ".join(sys.argv[1:4]) + "\\n")
if os.environ.get("REFUSES") == sys.argv[2]:
    sys.exit("not today")
if sys.argv[2] == "add-json":
    if sys.argv[5] in servers:
        sys.exit("already exists")
    servers[sys.argv[5]] = json.loads(sys.argv[6])
elif sys.argv[5] not in servers:
    sys.exit("No MCP server named " + sys.argv[5])
else:
    del servers[sys.argv[5]]
open(path, "w").write(json.dumps(said, indent=2))
"""
"""What `claude mcp add-json` and `claude mcp remove` do to `~/.claude.json`, as seen with 2.1.197."""


def program(directory: Path, name: str, source: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!{sys.executable}\n{source}")
    path.chmod(0o755)
    return path
