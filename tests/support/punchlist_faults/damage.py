"""Bits flipped, sectors zeroed and tails cut off in the database and its WAL: is it noticed, and is the rest served?

Each image is opened by the store itself. What differs from what was written must have been said: by a damaged
conversation, a log that is behind its mark, or a refused start. SIZE counts images.
"""

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

import msgspec

from punchlist_faults import judge
from punchlist_faults.options import Figures, Options, Violation, main, need, workplace
from punchlist_faults.process import daemon_in
from punchlistd.store.port import Damaged, LogUnusable, StorageFailed
from punchlistd.store.sqlite import SqliteLog

CONVERSATIONS = 12
FILES = ("log.db", "log.db-wal", "log.mark")
SECTOR = 512

Contents = dict[str, list[bytes]]


def make_log(place: Path) -> tuple[Path, Contents]:
    """A log of a dozen conversations, half of it still in the WAL; its directory, and what each holds."""
    with daemon_in(place) as daemon:
        daemon.start()
        for half in range(2):
            link = daemon.connect()
            for call in range(60):
                name = f"c{call % CONVERSATIONS}"
                link.result("task.add", conversation=name, title=f"{half}.{call} " + "x" * 40)
            link.result("conversation.list")
            link.close()
            if half == 0:
                need(daemon.stop() == 0, "the daemon did not stop")
                daemon.start()
        daemon.kill()
        contents: Contents = {}
        for event in judge.stored_events(daemon.log):
            contents.setdefault(event.conversation, []).append(event.wire)
        return daemon.data, contents


class Harm:
    """One way to spoil an image. `file` is what was hit, `kind` how."""

    def __init__(self, random: Random, data: Path) -> None:
        self.file = random.choice(("log.db", "log.db-wal"))
        self.kind = random.choice(("flip", "flip", "zero", "cut"))
        size = (data / self.file).stat().st_size
        self.place = random.randrange(size)
        self.bit = random.randrange(8)

    def do(self, data: Path) -> None:
        """Spoil the file in a directory."""
        path = data / self.file
        content = bytearray(path.read_bytes())
        if self.kind == "flip":
            content[self.place] ^= 1 << self.bit
        elif self.kind == "zero":
            begin = self.place - self.place % SECTOR
            content[begin : begin + SECTOR] = bytes(min(SECTOR, len(content) - begin))
        else:
            del content[self.place :]
        path.write_bytes(content)

    def __str__(self) -> str:
        return f"{self.kind} of {self.file} at {self.place} bit {self.bit}"


async def look(path: Path, contents: Contents) -> str:
    """Open an image and compare: `refused`, `reported`, or `harmless` where everything is as it was written.

    Raises:
        Violation: something differs and nothing was said, or an intact conversation is not served.
    """
    try:
        log = await SqliteLog.open(str(path), reserve_bytes=0)
    except LogUnusable:
        return "refused"
    try:
        said = log.regressed is not None
        for name, wires in contents.items():
            try:
                tail = [json.loads(event.wire) for event in (await log.load(name)).tail]
                read = [event.wire for event in await log.read(0, 1 << 30, conversation=name, max_bytes=1 << 40)]
            except Damaged:
                said = True
                continue
            need(all(msgspec.json.decode(wire) is not None for wire in read), "an event is no JSON")
            need(read == wires[: len(read)], f"{name} is served with another content")
            need(len(read) == len(wires) or said, f"{name} lost {len(wires) - len(read)} events in silence")
            need(not tail or tail[-1] == json.loads(read[-1]), f"{name} is loaded and read differently")
        return "reported" if said else "harmless"
    except StorageFailed:
        return "reported"
    finally:
        await log.close()


def run(options: Options) -> Figures:
    """Spoil as many images as SIZE says, and then one under a real daemon."""
    counts: Counter[str] = Counter()
    random = options.random()
    with workplace() as place:
        golden, contents = make_log(place / "golden")
        for _ in range(options.size):
            image = place / "image"
            shutil.rmtree(image, ignore_errors=True)
            image.mkdir()
            for file in FILES:
                shutil.copyfile(golden / file, image / file)
            harm = Harm(random, golden)
            harm.do(image)
            try:
                verdict = asyncio.run(look(image / "log.db", contents))
            except Exception as error:
                raise Violation(f"{harm}: {error!r}") from error
            counts[f"{harm.kind} in {harm.file}: {verdict}"] += 1
        counts["flip in the index of events: as written"] = _index(place / "index", golden, contents, options)
        served = _daemon_serves_the_rest(place / "served", golden)
    return {**dict(sorted(counts.items())), "silently wrong": 0, "served beside a damaged one": served}


def _index(place: Path, golden: Path, contents: Contents, options: Options) -> int:
    """Flip bits where the index says which rows hold a conversation's events: the log must make up for all of them."""
    shutil.copytree(golden, place)
    path = place / "log.db"

    async def close_well() -> None:
        await (await SqliteLog.open(str(path), reserve_bytes=0)).close()

    asyncio.run(close_well())
    with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as connection:
        pages = connection.execute("SELECT pgoffset, pgsize FROM dbstat WHERE name = 'parts'").fetchall()
    content, random, images = path.read_bytes(), options.random("index"), max(20, options.size // 10)
    used = [at for start, size in pages for at in range(start, start + size) if content[at]]
    for _ in range(images):
        at, bit = random.choice(used), random.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        shutil.copyfile(golden / "log.mark", place / "log.mark")
        verdict = asyncio.run(look(path, contents))
        need(verdict == "harmless", f"bit {bit} of byte {at} in the index: {verdict}")
    return images


def _daemon_serves_the_rest(place: Path, golden: Path) -> int:
    """A daemon over an event with one changed byte: that conversation is read-only, the others work."""
    with daemon_in(place) as daemon:
        shutil.copytree(golden, daemon.data)
        content = (daemon.data / "log.db").read_bytes()
        victim = b'"title":"0.5 '  # of conversation c5
        need(content.count(victim) >= 1, "the victim is in the database")
        (daemon.data / "log.db").write_bytes(content.replace(victim, b'"title":"9.5 '))
        daemon.start()
        link = daemon.connect()
        served = 0
        for each in range(CONVERSATIONS):
            name = f"c{each}"
            answer = link.call("task.add", conversation=name, title="more")
            shown = link.call("task.list", conversation=name)
            if each == 5:
                need(answer.get("error", {}).get("data", {}).get("kind") == "damaged", f"{name} was written: {answer}")
                need("result" in shown or shown["error"]["data"]["kind"] == "damaged", f"{name}: {shown}")
            else:
                need("result" in answer and len(shown["result"]["tasks"]) == 11, f"{name} is not served: {answer}")
                served += 1
        return served


if __name__ == "__main__":
    main("damage", run, 2_000)
