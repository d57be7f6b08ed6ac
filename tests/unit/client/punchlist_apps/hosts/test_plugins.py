"""Plugins as the hosts recorded them: Claude Code 2.1.332, Codex 0.171.0 and Gemini CLI 0.61.0."""

import json
from pathlib import Path
from typing import Any

import pytest

from punchlist_apps.hosts.catalog import Place, Scope, get_host
from punchlist_apps.hosts.plugins import find_plugin


def find(home: Path, host: str, scope: Scope = "user") -> str | None:
    found = find_plugin(get_host(host), Place(scope, str(home / "project"), {"HOME": str(home)}, "punch"))
    return found.name if found else None


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def test_last_settings_of_claude_code_decide(tmp_path: Path) -> None:
    name = "punchlist@punchlist"
    assert find(tmp_path, "claude-code") is None
    write(tmp_path / ".claude" / "settings.json", {"enabledPlugins": {"other@punchlist": True, name: True}})
    assert find(tmp_path, "claude-code") == find(tmp_path, "claude-code", "project") == name
    write(tmp_path / "project" / ".claude" / "settings.local.json", {"enabledPlugins": {name: False}})
    assert find(tmp_path, "claude-code", "project") is None
    assert find(tmp_path, "claude-code") == name


@pytest.mark.parametrize(("enabled", "expected"), [("enabled = true", True), ("", True), ("enabled = false", False)])
def test_codex_plugin_counts_while_enabled(tmp_path: Path, enabled: str, expected: bool) -> None:
    write(tmp_path / ".codex" / "config.toml", f'[plugins."punchlist@ours"]\n{enabled}\n')
    assert find(tmp_path, "codex", "project") == ("punchlist@ours" if expected else None)


def test_last_rule_of_gemini_decides(tmp_path: Path) -> None:
    assert find(tmp_path, "gemini") is None
    (tmp_path / ".gemini" / "extensions" / "punchlist").mkdir(parents=True)
    assert find(tmp_path, "gemini") == "punchlist"
    rules = [f"{tmp_path}/*", f"!{tmp_path}/project/*"]
    write(tmp_path / ".gemini" / "extensions" / "extension-enablement.json", {"punchlist": {"overrides": rules}})
    assert find(tmp_path, "gemini") == "punchlist"
    assert find(tmp_path, "gemini", "project") is None


def test_plugin_of_a_project_is_disabled_there(tmp_path: Path) -> None:
    place = Place("project", str(tmp_path / "project"), {"HOME": str(tmp_path)}, "punch")
    enabled = {"enabledPlugins": {"punchlist@punchlist": True}}
    for path, is_local in (("project/.claude/settings.json", True), (".claude/settings.json", False)):
        write(tmp_path / path, enabled)
        plugin = find_plugin(get_host("claude-code"), place)
        assert plugin is not None and plugin.is_local == is_local
        assert plugin.turn_off.startswith("claude plugin disable" if is_local else "claude plugin uninstall")


def test_unreadable_file_contains_no_plugin(tmp_path: Path) -> None:
    write(tmp_path / ".claude" / "settings.json", "{,")
    write(tmp_path / ".codex" / "config.toml", 'plugins = "none"')
    assert find(tmp_path, "claude-code") is find(tmp_path, "codex") is find(tmp_path, "cursor") is None
