"""The packages for hosts and registries, as far as that needs no host; `make shops` runs the hosts."""

import json
import re

import pytest

from punchlist_apps.cli.parsing.parser import parse
from punchlist_packages import shops
from punchlist_packages.hatch_build import ROOT
from punchlist_testing.shops import list_commands


@pytest.mark.parametrize("words", list_commands(), ids=" ".join)
def test_command_of_package_parses(words: tuple[str, ...]) -> None:
    assert parse(list(words[1:])).former == ""


def test_generated_packages_are_in_sync() -> None:
    assert {path for path, text in shops.files().items() if (ROOT / path).read_text("utf-8") != text} == set()


def test_all_packages_have_one_version() -> None:
    version = shops.read_version()
    assert json.loads((ROOT / "editors/vscode/package.json").read_text("utf-8"))["version"] == version
    stated = [
        found
        for text in shops.files().values()
        for found in re.findall(r'"version": "(.+)"|punchlist\[mcp\]==([\d.]+)', text)
    ]
    assert len(stated) >= 6
    assert {"".join(one) for one in stated} == {version}


def test_registry_finds_its_name_and_description() -> None:
    server = json.loads(shops.files()["plugins/registry/server.json"])
    assert f"<!-- mcp-name: {server['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    assert len(server["description"]) <= 100


def test_homebrew_gets_the_description() -> None:
    assert '  desc "Task list that AI agents share"\n' in shops.files()["Formula/punchlist.rb"]
