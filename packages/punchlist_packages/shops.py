"""The manifests with which hosts and registries install punchlist, generated from one set of facts.

Name, description, license and addresses come from `pyproject.toml`, the version from the sources, the servers' entries
from the catalog of `punch setup`, and the tools from their definitions. Text for models and people is written by hand
next to the manifests.
"""

import json
import re
import tomllib
from typing import Any

from punchlist import __version__
from punchlist.tools import registry
from punchlist_apps.hosts.catalog import Place, get_host
from punchlist_packages.hatch_build import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME: str = PROJECT["name"]
DESCRIPTION: str = PROJECT["description"]
AUTHOR: dict[str, str] = PROJECT["authors"][0]
REPOSITORY: str = PROJECT["urls"]["Repository"]

BUNDLED = "server/punch.pyz"
"""The single file's path in the MCP bundle."""

_SHORT = DESCRIPTION.partition(":")[0]
_KEYWORDS = ["agents", "mcp", "tasks", "todo"]
_PLUGIN = "plugins/punchlist"
_AGENT_PLUGIN = "plugins/agent-plugin"
_GEMINI = "plugins/gemini"
_SKILL = "skills/punchlist/SKILL.md"
_SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"

_PLACE = Place("project", "", {}, "punch")
"""Where `punch` is found in PATH."""


def read_version() -> str:
    """Return the version of the next release, which is the one in the sources without its suffix."""
    found = re.match(r"\d+\.\d+\.\d+", __version__)
    if found is None:
        raise ValueError(f"{__version__} doesn't begin with three numbers; correct client/punchlist/base/__init__.py")
    return found[0]


def registry_name() -> str:
    """Return the name in the MCP registry, which README.md has to contain."""
    owner, _, name = REPOSITORY.removeprefix("https://github.com/").partition("/")
    return f"io.github.{owner}/{name}"


def files() -> dict[str, str]:
    skill = (ROOT / _PLUGIN / _SKILL).read_text("utf-8")
    manifests: dict[str, Any] = {
        ".claude-plugin/marketplace.json": _claude_marketplace(),
        f"{_PLUGIN}/.claude-plugin/plugin.json": {
            **_describe(),
            "author": AUTHOR,
            "homepage": PROJECT["urls"]["Homepage"],
            "repository": REPOSITORY,
            "keywords": _KEYWORDS,
        },
        f"{_PLUGIN}/.mcp.json": {"mcpServers": {NAME: _build_entry("claude-code")}},
        f"{_PLUGIN}/hooks/hooks.json": {
            "description": "Open tasks and changes by others go into the context; claims end with their session.",
            "hooks": _hooks("claude-code"),
        },
        f"{_PLUGIN}/monitors/monitors.json": [
            {
                "name": "tasks",
                "command": "punch agent watch",
                "description": "Changes by others to this project's task list",
            }
        ],
        ".agents/plugins/marketplace.json": _codex_marketplace(),
        f"{_PLUGIN}/.codex-plugin/plugin.json": {
            **_describe(),
            "skills": "./skills/",
            "mcpServers": "./codex.mcp.json",
            "hooks": "./hooks/codex.json",
            "interface": {"displayName": NAME, "shortDescription": _SHORT, "category": "Productivity"},
        },
        # Codex wouldn't start without a required server, and a plugin can't know whether `punch` is installed.
        f"{_PLUGIN}/codex.mcp.json": {"mcpServers": {NAME: _build_entry("codex") | {"required": False}}},
        f"{_PLUGIN}/hooks/codex.json": {"hooks": _hooks("codex")},
        f"{_AGENT_PLUGIN}/plugin.json": {"$schema": f"{_SCHEMAS}/plugin.schema.json", **_describe()},
        f"{_AGENT_PLUGIN}/mcp.json": {
            "$schema": f"{_SCHEMAS}/mcp.schema.json",
            "mcpServers": {NAME: _build_entry("vscode")},
        },
        f"{_GEMINI}/gemini-extension.json": {
            **_describe(),
            "mcpServers": {NAME: _build_entry("gemini")},
            "contextFileName": "GEMINI.md",
        },
        f"{_GEMINI}/hooks/hooks.json": {"hooks": _hooks("gemini")},
        "plugins/registry/server.json": _registry_server(),
        "plugins/mcpb/manifest.json": _bundle_manifest(),
    }
    texts = {path: json.dumps(value, ensure_ascii=False, indent=2) + "\n" for path, value in manifests.items()}
    return {**texts, f"{_AGENT_PLUGIN}/{_SKILL}": skill, "Formula/punchlist.rb": _formula()}


def _describe() -> dict[str, str]:
    return {"name": NAME, "version": read_version(), "description": DESCRIPTION, "license": PROJECT["license"]}


def _build_entry(host: str) -> dict[str, Any]:
    """Return the entry of the server that `punch setup` writes for a host, with the command as found in PATH."""
    return get_host(host).build_entry(_PLACE)


def _hooks(host: str) -> dict[str, Any]:
    """Return the hooks that `punch setup` writes for a host."""
    edits = (edit for file in get_host(host).list_edits(_PLACE) for edit in file.edits)
    return {edit.path[1]: [edit.value] for edit in edits if edit.path[0] == "hooks"}


def _claude_marketplace() -> dict[str, Any]:
    return {
        "name": NAME,
        "owner": AUTHOR,
        "metadata": {"description": DESCRIPTION},
        "plugins": [
            {
                "name": NAME,
                "source": f"./{_PLUGIN}",
                "description": DESCRIPTION,
                "category": "productivity",
                "keywords": _KEYWORDS,
            }
        ],
    }


def _codex_marketplace() -> dict[str, Any]:
    return {
        "name": NAME,
        "interface": {"displayName": NAME},
        "plugins": [
            {
                "name": NAME,
                "source": {"source": "local", "path": f"./{_PLUGIN}"},
                "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
                "category": "Productivity",
            }
        ],
    }


def _registry_server() -> dict[str, Any]:
    # Clients run the hint with its arguments, the identifier, and the package's arguments.
    version = read_version()
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": registry_name(),
        "title": NAME,
        "description": DESCRIPTION,
        "version": version,
        "repository": {"url": REPOSITORY, "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "identifier": NAME,
                "version": version,
                "runtimeHint": "uvx",
                "runtimeArguments": [{"type": "named", "name": "--from", "value": f"{NAME}[mcp]=={version}"}],
                "packageArguments": [{"type": "positional", "value": word} for word in _build_entry("cursor")["args"]],
                "transport": {"type": "stdio"},
            }
        ],
    }


def _bundle_manifest() -> dict[str, Any]:
    arguments = [f"${{__dirname}}/{BUNDLED}", *_build_entry("cursor")["args"], "-c", "${user_config.list}"]
    return {
        "manifest_version": "0.3",
        **_describe(),
        "display_name": NAME,
        "author": AUTHOR,
        "homepage": PROJECT["urls"]["Homepage"],
        "repository": {"type": "git", "url": REPOSITORY},
        "keywords": _KEYWORDS,
        "server": {
            "type": "binary",
            "entry_point": BUNDLED,
            "mcp_config": {"command": "python3", "args": arguments},
        },
        "tools": [{"name": tool.name, "description": tool.text} for tool in registry.dialect("native").tools],
        "user_config": {
            "list": {
                "type": "string",
                "title": "List",
                "description": "The task list to use; programs with the same name share it",
                "default": "default",
            }
        },
        # The single file contains modules compiled for Linux.
        "compatibility": {"platforms": ["linux"], "runtimes": {"python": PROJECT["requires-python"]}},
    }


_FORMULA = """\
# Builds the main branch: `brew install --HEAD`. A release adds `url` and `sha256`.
class Punchlist < Formula
  desc "{short}"
  homepage "{homepage}"
  license "{license}"
  head "{repository}.git", branch: "main"

  depends_on "python@3.13"

  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    system libexec/"bin/pip", "install", "#{{buildpath}}[mcp]"
    bin.install_symlink libexec/"bin/punch", libexec/"bin/punchlist", libexec/"bin/punchlistd"
    generate_completions_from_executable(bin/"punch", "completion")
  end

  service do
    run [opt_bin/"punchlistd"]
    keep_alive true
  end

  test do
    ENV["XDG_RUNTIME_DIR"] = testpath
    system bin/"punch", "-c", "test", "add", "one"
    assert_match "one", shell_output("#{{bin}}/punch -c test list")
  end
end
"""


def _formula() -> str:
    short = _SHORT.removeprefix("The ")  # Homebrew rejects descriptions that begin with an article.
    return _FORMULA.format(
        short=short[0].upper() + short[1:],
        homepage=PROJECT["urls"]["Homepage"],
        license=PROJECT["license"],
        repository=REPOSITORY,
    )
