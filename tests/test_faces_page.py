"""docs/faces.md, word by word: its transcript of curl runs against a real server."""

import re
from pathlib import Path

import anyio

from punchlist import connect_async
from punchlist_schemas.params import SettingsPatch
from punchlist_testing.optional import needs
from punchlist_testing.web import served

PAGE = Path(__file__).resolve().parents[1] / "docs" / "faces.md"


def transcript() -> list[tuple[str, str]]:
    """Each command of the page's console block, and what it prints."""
    (block,) = re.findall(r"^```console\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown.strip()) for command, _, shown in (part.partition("\n") for part in parts)]


def fits(shown: str, real: str) -> bool:
    """Whether a shortened line of the page is the real one: … stands for a number or a text."""
    pattern = re.escape(shown).replace(r'"…"', '"[^"]+"').replace("…", "[0-9]+")
    return re.fullmatch(pattern, real) is not None


@needs("curl")
async def test_the_transcript_of_the_three_endpoints_is_true(tmp_path: Path) -> None:
    lines = transcript()
    assert len(lines) == 4
    async with served(tmp_path) as web:
        async with connect_async(socket=web.daemon.socket, autostart=False) as client:
            plan = client.conversation("default")
            await plan.open(settings=SettingsPatch(execution="serial"))
            await plan.add_many(["Agree on the menu", "Order the ingredients", "Bake the bread"])
            await plan.start("1")
        for command, shown in lines:
            here = command.replace("$TOKEN", web.token).replace(":8322", f":{web.port}")
            with anyio.fail_after(30):
                done = await anyio.run_process(["sh", "-c", here])
            assert fits(shown, done.stdout.decode()), (command, done.stdout)
