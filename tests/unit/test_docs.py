"""The pages are correct: links, paths and commands exist, and examples run as shown."""

import json
import posixpath
import re
import shlex
from pathlib import Path
from typing import Any

import anyio
import pytest

from punchlist import connect_async
from punchlist_apps.cli.parsing.parser import parse
from punchlist_schemas.params import SettingsPatch
from punchlist_testing.daemon import Raw, spawned_daemon
from punchlist_testing.optional import needs
from punchlist_testing.web import served

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"))
}


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.DOTALL | re.MULTILINE)


def headings(page: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and `make docs` write them."""
    found = re.findall(r"^#+ (.+)$", PAGES[page], re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page: str) -> None:
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"(?<!`)\]\((?!https?:)([^)\s]*)\)", text):
        path, _, anchor = link.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        assert (ROOT / target).exists(), link
        assert not anchor or anchor in headings(target), link


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/how-it-works.md"])
def test_named_paths_exist(page: str) -> None:
    places = [ROOT / name for name in ("", "daemon/punchlistd", "client/punchlist", "client/punchlist_apps")]
    named = re.findall(r"`([\w.-]+/[\w./-]*)`", PAGES[page])
    # A word with a slash is a path if its first folder exists. A module may be named without its extension.
    paths = [name for name in named if any((place / name.partition("/")[0]).exists() for place in places)]
    ends = ("", ".py")
    assert [
        name for name in paths if not any((place / f"{name}{end}").exists() for place in places for end in ends)
    ] == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "RELIABILITY.md"])
def test_named_make_targets_exist(page: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(re.findall(r"(?:^|`)make ([a-z-]+)", PAGES[page], re.MULTILINE)) <= set(targets)


SHOWN = [line for page in PAGES for block in blocks(page, "sh") for line in block.splitlines()]


@pytest.mark.parametrize("line", dict.fromkeys(line for line in SHOWN if line.startswith("punch ")))
def test_shown_commands_parse(line: str) -> None:
    args = parse(shlex.split(line.partition(" >")[0], comments=True)[1:])
    assert args.command is not None
    assert args.former == ""


def test_python_blocks_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with spawned_daemon(tmp_path) as daemon:
        monkeypatch.setenv("PUNCHLIST_SOCKET", daemon.socket)
        monkeypatch.setenv("PUNCHLIST_DATA_DIR", daemon.data_dir)
        monkeypatch.setenv("PUNCHLIST_AUTOSTART", "0")
        names: dict[str, Any] = {}
        try:
            for block in blocks("docs/python.md", "python"):
                exec(block, names)  # noqa: S102 - our own page
        finally:
            names["client"].close()
    assert capsys.readouterr().out.splitlines() == [
        "1 completed Write the copy",
        "2 pending Publish",
        "somebody was faster: it is at 6",
        "task 99",
        "7 TaskAdded",
        "Counts(pending=2, in_progress=0, paused=0, completed=1, failed=0, blocked=0, ready=2)",
        "['python']",
        "working on Publish",
        "working on Tell everybody",
        "3",
    ]


def fits(shown: Any, real: Any) -> bool:
    """Return whether a shortened value on a page matches the real one; … stands for any text."""
    match shown:
        case "…":
            return isinstance(real, str) and real != ""
        case dict():
            return isinstance(real, dict) and all(name in real and fits(shown[name], real[name]) for name in shown)  # pyright: ignore[reportUnknownVariableType]
        case list():
            return isinstance(real, list) and len(shown) == len(real) and all(map(fits, shown, real))  # pyright: ignore[reportUnknownArgumentType]
        case _:
            return shown == real


def test_protocol_examples_run(tmp_path: Path) -> None:
    lines = [line.partition(" ") for block in blocks("docs/protocol.md", "jsonl") for line in block.splitlines()]
    assert len(lines) > 20
    with spawned_daemon(tmp_path) as daemon:
        raw = Raw(daemon.socket)
        try:
            for arrow, _, text in lines:
                message = json.loads(text)
                if arrow == "→":
                    raw.send(message["method"], message["params"], id=message["id"])
                else:
                    real = raw.receive()
                    assert fits(message, real), (message, real)
        finally:
            raw.close()


@needs("curl")
async def test_web_transcript_runs(tmp_path: Path) -> None:
    (block,) = blocks("docs/faces.md", "console")
    commands = [part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    assert len(commands) == 4
    async with served(tmp_path) as web:
        async with connect_async(socket=web.daemon.socket, autostart=False) as client:
            plan = client.conversation("default")
            await plan.open(settings=SettingsPatch(execution="serial"))
            await plan.add_many(["Agree on the menu", "Order the ingredients", "Bake the bread"])
            await plan.start("1")
        for command, _, shown in commands:
            with anyio.fail_after(30):
                here = command.replace("$TOKEN", web.token).replace(":8322", f":{web.port}")
                done = await anyio.run_process(["sh", "-c", here])
            # … stands for a text or a number.
            pattern = re.escape(shown.strip()).replace(r'"…"', '"[^"]+"').replace("…", "[0-9]+")
            assert re.fullmatch(pattern, done.stdout.decode()), (command, done.stdout)
