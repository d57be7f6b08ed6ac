"""Building packages, as far as that needs no network; `make dist TEST=1` installs them."""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from punchlist_apps.cli.parsing.index import COMMANDS, GROUPS
from punchlist_packages import debian, man
from punchlist_packages.hatch_build import MACHINE, ROOT, STATED, compile_program, is_current, stamped

PINS = ("dist", "dev", "mcp")


def git(root: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.run(
        ["git", *who, "-C", str(root), *words], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Source files with the version 0.2.0.dev0."""
    for path in STATED:
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text('__version__ = "0.2.0.dev0"\n')
    return tmp_path


def test_version_is_the_tag_with_the_commit(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "add", ".")
    git(tree, "commit", "-qm", "one")
    first = git(tree, "rev-parse", "--short=8", "HEAD")
    assert stamped(tree) == f"0.2.0.dev0+g{first}"
    git(tree, "tag", "v0.2.0")
    assert stamped(tree) == f"0.2.0+g{first}"
    git(tree, "commit", "-qm", "two", "--allow-empty")
    second = git(tree, "rev-parse", "--short=8", "HEAD")
    assert stamped(tree) == f"0.2.0.post1+g{second}"
    (tree / STATED[1]).write_text("")
    assert stamped(tree) == f"0.2.0.post1+g{second}.changed"


def test_other_tags_keep_the_stated_version(tree: Path) -> None:
    git(tree, "init", "-q")
    git(tree, "commit", "-qm", "one", "--allow-empty")
    git(tree, "tag", "v1-of-the-demo")
    assert stamped(tree) == "0.2.0.dev0"


def test_sdist_in_another_repository_keeps_its_version(tree: Path) -> None:
    git(tree.parent, "init", "-q")
    git(tree.parent, "commit", "-qm", "not ours", "--allow-empty")
    (tree / STATED[0]).write_text('__version__ = "0.2.0+g58f14210"\n')
    try:
        assert stamped(tree) == "0.2.0+g58f14210"
    finally:
        shutil.rmtree(tree.parent / ".git")


def test_debian_orders_versions_correctly() -> None:
    assert [debian.version(text) for text in ("0.2.0rc1", "0.2.0", "0.2.0.post3", "0.2.0.dev4")] == [
        "0.2.0~rc1",
        "0.2.0",
        "0.2.0.post3",
        "0.2.0~dev4",
    ]


def test_manual_pages_cover_all_options() -> None:
    pages = man.pages("0.2.0")
    named = {name: f"punch-{name.replace(' ', '-')}" for name in (*COMMANDS, *GROUPS)}
    assert set(pages) == {"punch", "punchlistd", *named.values()}
    for name, page in pages.items():
        assert f".SH NAME\n{man.escaped(name)} \\- " in page
    for name, entry in COMMANDS.items():
        shown = pages[named[name]].replace("\\-", "-")
        options = [flag for one in entry.usage.arguments if not one.is_positional for flag in one.flags]
        assert [flag for flag in options if flag not in shown] == []
        assert [line for line in entry.usage.examples if man.escaped(line) not in pages[named[name]]] == []


def test_texts_are_escaped_for_roff() -> None:
    assert man.escaped(".so /etc/passwd\n'br\na\\b --all") == "\\&.so /etc/passwd\n\\&'br\na\\eb \\-\\-all"
    requests = {".TH", ".SH", ".SS", ".PP", ".TP", ".nf", ".fi"}
    for page in man.pages("0.2.0").values():
        assert {line.split()[0] for line in page.splitlines() if line.startswith((".", "'"))} <= requests


def test_pins_cover_all_dependencies() -> None:
    lines = {name: (ROOT / f"requirements/{name}.txt").read_text("utf-8").lower().splitlines() for name in PINS}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]

    def names(*extra: str) -> set[str]:
        wanted = [*project["dependencies"], *(line for name in extra for line in extras[name])]
        return {re.split(r"[<>=]", line)[0] for line in wanted}

    pinned = {name: [line.partition("==")[0] for line in lines[name] if "==" in line] for name in PINS}
    assert names("uvloop", "web", "dev") <= set(pinned["dev"])
    bundled = {line for line in lines["dist"] if line[0] != "#"}
    assert names("mcp", "web", "ui") <= bundled
    versions = {line.split(" ")[0] for line in lines["dev"] + lines["mcp"] if "==" in line}
    counted = [version.partition("==")[0] for version in versions]
    assert [name for name in bundled if counted.count(name) != 1] == [], "each package is pinned to one exact version"


def test_stale_vscode_package_is_left_out(tmp_path: Path) -> None:
    package, source = tmp_path / "punchlist.vsix", tmp_path / "src/extension.ts"
    source.parent.mkdir()
    source.touch()
    assert not is_current(package)
    package.touch()
    assert is_current(package)
    os.utime(package, (0, 0))
    assert not is_current(package)


@pytest.mark.parametrize("machine", ["any", platform.machine()])
def test_wheel_contains_one_program_punch(tmp_path: Path, machine: str) -> None:
    if machine != "any" and not compile_program(tmp_path / "punch", machine):
        pytest.skip("there is no static C compiler")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env={**os.environ, MACHINE: machine})
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".data/scripts/punch"))
        assert packed.read(name).startswith(b"#!python\n" if machine == "any" else b"\x7fELF")
        assert packed.getinfo(name).external_attr >> 16 & 0o111, "it can be run"
    assert wheel.name.endswith("-py3-none-any.whl") == (machine == "any")


def test_unknown_machine_gets_the_plain_program(tmp_path: Path) -> None:
    assert not compile_program(tmp_path / "punch", "unknown")
    assert not (tmp_path / "punch").exists()
