"""Flipped bits, zeroed sectors, swapped pages and truncated files of the database and its WAL.

SIZE is the number of images. A daemon serves each of them, and all data is read from it. Any difference from the
written data must be reported: by an error, the marker `damaged`, the end of a stream, a log that is behind its
high-water mark, or a rejected start.
"""

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from random import Random

from punchlist_faults import judge
from punchlist_faults.options import Figures, Options, Violation, need, workplace
from punchlist_faults.process import daemon_in
from punchlist_faults.seen import REPORTED, SAME, SILENT, Truth, ask_truth, look
from punchlist_testing.store import DELETED, Scribe
from punchlistd.store.sqlite import SqliteLog

CONVERSATIONS = 12
FILES = ("log.db", "log.db-wal", "log.mark", "log.index", "log.index-wal")
SECTOR = 512
PAGE = 4096

REMADE = "anew"
"""A shared list that was deleted and created again while this machine was offline: its tombstone skips versions."""


async def delete_elsewhere(path: Path) -> None:
    """Append the deletion of a list without the versions before it."""
    log = await SqliteLog.open(str(path), reserve_bytes=0)
    scribe = Scribe(log)
    scribe.versions[REMADE] = (await log.load(REMADE)).newer[-1].version + 5
    await scribe.write(REMADE, DELETED)
    await log.erase(REMADE)
    await log.close()


def make_log(place: Path) -> tuple[Path, set[str]]:
    """Create a log of a dozen conversations and a recreated one, half of it in the WAL; return directory and lists."""
    with daemon_in(place) as daemon:
        daemon.start()
        for half in range(2):
            link = daemon.connect()
            for call in range(60):
                name = f"c{call % CONVERSATIONS}"
                link.result("task.add", conversation=name, title=f"{half}.{call} " + "x" * 40, key=f"{half}.{call}")
                if call % 3 == 0:
                    link.result("message.append", conversation=name, role="user", content=f"{half}.{call} said")
            for number in range(3):
                link.result("task.add", conversation=REMADE, title=f"{half}.anew.{number}")
            link.result("conversation.list")
            link.close()
            if half == 0:
                daemon.stop()
                asyncio.run(delete_elsewhere(daemon.log))
                daemon.start()
        daemon.kill()
        events = [event for event in judge.stored_events(daemon.log) if event.line]  # The count excludes erased events.
        versions = [json.loads(event.wire)["version"] for event in events if event.conversation == REMADE]
        need(versions[0] > len(versions), f"the list that was made again has the versions {versions}")
        return daemon.data, {event.conversation for event in events}


class Harm:
    """Random damage to an image: the damaged file, the offset and the kind of damage."""

    def __init__(self, random: Random, data: Path) -> None:
        self.file = random.choice(("log.db", "log.db-wal"))
        self.kind = random.choice(("flip", "flip", "zero", "zero", "swap", "cut"))
        content = (data / self.file).read_bytes()
        size = len(content)
        self.place = random.randrange(size)
        while not any(content[self.place - self.place % SECTOR :][:SECTOR]):  # skip preallocated zeros
            self.place = random.randrange(size)
        self.bit = random.randrange(8)
        self.other = random.randrange(size)

    def do(self, data: Path) -> None:
        path = data / self.file
        content = bytearray(path.read_bytes())
        if self.kind == "flip":
            content[self.place] ^= 1 << self.bit
        elif self.kind == "zero":
            begin = self.place - self.place % SECTOR
            content[begin : begin + SECTOR] = bytes(min(SECTOR, len(content) - begin))
        elif self.kind == "swap":
            one, two = (_page(self.file, place) for place in (self.place, self.other))
            content[one : one + PAGE], content[two : two + PAGE] = content[two : two + PAGE], content[one : one + PAGE]
        else:
            del content[self.place :]
        path.write_bytes(content)

    def __str__(self) -> str:
        return f"{self.kind} of {self.file} at {self.place} bit {self.bit} or {self.other}"


def _page(file: str, place: int) -> int:
    """Return the offset of the page that contains a place; in the WAL, each page follows a frame header."""
    if file == "log.db":
        return place - place % PAGE
    frame = max(0, place - 32) // (PAGE + 24)
    return 32 + frame * (PAGE + 24) + 24


def run(options: Options) -> Figures:
    counts: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    silent: list[str] = []
    random = options.random()
    with workplace() as place:
        golden, lists = make_log(place / "golden")
        truth = asyncio.run(ask_truth(_image(golden, place), lists))
        for _ in range(options.size):
            image = _image(golden, place)
            harm = Harm(random, golden)
            harm.do(image)
            try:
                seen = asyncio.run(look(image, truth))
            except Exception as error:
                raise Violation(f"{harm}: {error!r}") from error
            verdicts = [result.rpartition(": ")[2] for result in seen]
            if SILENT in verdicts or "refused" in verdicts:
                worst = SILENT if SILENT in verdicts else "refused"
            else:
                worst = REPORTED if {*verdicts} - {SAME} else SAME
            counts[f"{harm.kind:<4} {harm.file:<10} {worst}"] += 1
            answers += seen
            if worst == SILENT:
                silent.append(f"{harm}: {', '.join(result for result in seen if result.endswith(SILENT))}")
        need(not silent, f"{len(silent)} images miss something without a word:\n" + "\n".join(silent[:50]))
        counts["flip in the index of events: as written"] = _flip_index(place, golden, truth, options)
        served = _serve_the_rest(place / "served", golden)
    return {
        **dict(sorted(counts.items())),
        **{f"answers {result}": count for result, count in sorted(answers.items())},
        "served with a damaged one": served,
    }


def _image(golden: Path, place: Path) -> Path:
    image = place / "image" / "data"
    shutil.rmtree(image.parent, ignore_errors=True)
    image.mkdir(parents=True, mode=0o700)
    image.parent.chmod(0o700)
    for file in FILES:
        if (golden / file).exists():
            shutil.copyfile(golden / file, image / file)
    return image


def _flip_index(place: Path, golden: Path, truth: Truth, options: Options) -> int:
    """Flip bits in the index of conversations' events, which must not change any response. Return the number of
    bits."""
    closed = place / "closed"
    shutil.copytree(golden, closed)

    async def close_well() -> None:
        await (await SqliteLog.open(str(closed / "log.db"), reserve_bytes=0)).close()

    asyncio.run(close_well())
    with closing(sqlite3.connect(f"file:{closed}/log.index?mode=ro&immutable=1", uri=True)) as connection:
        pages = connection.execute("SELECT pgoffset, pgsize FROM dbstat WHERE name = 'parts'").fetchall()
    content, random, images = (closed / "log.index").read_bytes(), options.random("index"), max(20, options.size // 10)
    used = [at for start, size in pages for at in range(start, start + size) if content[at]]
    for _ in range(images):
        at, bit = random.choice(used), random.randrange(8)
        image = _image(closed, place)
        (image / "log.index").write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        seen = asyncio.run(look(image, truth))
        need(all(result.endswith(SAME) for result in seen), f"bit {bit} of byte {at} in the index: {seen}")
    return images


def _serve_the_rest(place: Path, golden: Path) -> int:
    """Change a byte of one event: only its conversation may become read-only. Return the number of other
    conversations."""
    with daemon_in(place) as daemon:
        shutil.copytree(golden, daemon.data)
        content = (daemon.data / "log.db").read_bytes()
        victim = b'"title":"0.5 '  # a title in conversation c5
        need(victim in content, "the victim is in the database")
        (daemon.data / "log.db").write_bytes(content.replace(victim, b'"title":"9.5 '))
        daemon.start()
        link = daemon.connect()
        for number in range(CONVERSATIONS):
            name = f"c{number}"
            answer = link.call("task.add", conversation=name, title="more")
            shown = link.call("task.list", conversation=name)
            if number == 5:
                need(answer.get("error", {}).get("data", {}).get("kind") == "damaged", f"{name} was written: {answer}")
                need("result" in shown or shown["error"]["data"]["kind"] == "damaged", f"{name}: {shown}")
            else:
                need("result" in answer and len(shown["result"]["tasks"]) == 11, f"{name} is not served: {answer}")
        return CONVERSATIONS - 1
