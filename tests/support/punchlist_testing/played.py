"""Fake programs for tests: an MCP server named `punch`, and the `claude` command."""

import sys
from pathlib import Path

SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"tools": [{"name": "plan"}]} if request["method"] == "tools/list" else {"protocolVersion": "2025-06-18"}
    if "id" in request:
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
"""Answers `initialize` and `tools/list`."""

CLAUDE = """
import json, os, sys
path = os.path.join(os.environ["HOME"], ".claude.json")
config = json.load(open(path)) if os.path.exists(path) else {"machineID": 1}
servers = config.setdefault("mcpServers", {})
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
open(path, "w").write(json.dumps(config, indent=2))
"""
"""Changes `~/.claude.json` as `claude mcp add-json` and `claude mcp remove` of version 2.1.197 do."""


def program(directory: Path, name: str, source: str) -> Path:
    """Write an executable Python script; return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(f"#!{sys.executable}\n{source}")
    path.chmod(0o755)
    return path
