"""Fuzzing: each target gets random bytes that resemble its input: frames, calls, events, text, posts.

With SECONDS for each target, and with atheris installed, the fuzzing is guided by coverage. Otherwise well-formed
inputs are mutated: SIZE inputs, or as many as fit into SECONDS. ONLY names one target. A failing input is kept, and the
message names its file.
"""

import importlib.util
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from punchlist_faults.fuzz_space import make_posts
from punchlist_faults.fuzz_targets import TARGETS
from punchlist_faults.options import Figures, Options, Violation
from punchlist_schemas.methods import METHODS
from punchlist_testing import malformed
from punchlist_testing.domain import HOSTILE_TITLES, Recorder, random_call, random_event
from punchlistd.replication.adapters.nats.stream import build_settings

_NUMBERS = (b"-1", b"0", b"9007199254740993", b"1e400", b"1" * 40, b"null", b'""', b"[]", b"{}", b'"1"')
_SNIPPETS = (*(bytes([byte]) for byte in b'\n{}[]":,\\\xff'), b"\r\n", b"\\ud800", b"\xe2\x80\xae", b"\x1b[2J")
_LONGEST = 1 << 14


def _requests(random: Random) -> bytes:
    recorder = Recorder()
    lines: list[bytes] = []
    for number in range(random.randint(1, 6)):
        params = random_call(random, recorder.state)
        recorder.call(params)
        name = _NAMES[type(params)]
        lines.append(msgspec.json.encode({"jsonrpc": "2.0", "id": number, "method": name, "params": params}))
    return b"\n".join(lines)


def _stream(random: Random) -> bytes:
    requests = _requests(random).split(b"\n")
    first = bytes([random.randrange(256)])
    if random.random() < 0.5:
        return first + b"".join(b"Content-Length: %d\r\n\r\n%b" % (len(request), request) for request in requests)
    return first + b"\n".join(requests) + b"\n"


def _events(random: Random) -> bytes:
    ids = [str(number) for number in range(1, 6)]
    return b"\n".join(msgspec.json.encode(random_event(random, ids)) for _ in range(random.randint(1, 20)))


def _text(random: Random) -> bytes:
    code = random.choice((0x80, 0x2100, 0x10FFFF))
    letters = "".join(chr(random.randrange(code)) for _ in range(random.randint(0, 40)))
    return (random.choice(HOSTILE_TITLES) + letters).encode("utf-8", "surrogatepass")


def _body(random: Random) -> bytes:
    """Return the body of a post: one made by a daemon, or one with other events."""
    posted = random.choice(make_posts())
    if random.random() < 0.4:
        return posted.body
    ids = [str(number) for number in range(1, 6)]
    groups = [
        {
            "at": random.choice((1, 10**15, -1, 2**63)),
            "actor": random.choice(HOSTILE_TITLES),
            "events": [random_event(random, ids) for _ in range(random.randint(0, 3))],
            "key": random.choice(("", "key 1", "x" * 300)),
            "undoes": random.choice(((), (1,), (-3, 2**60))),
            "touches": random.choice(((), (2,))),
            "reverts_to": random.choice((None, 1, -1)),
        }
        for _ in range(random.randint(0, 3))
    ]
    changes = {
        "groups": groups,
        "version": random.choice((0, 2, 6, 2**53, 10**30)),
        "form": random.choice((1, 1, 1, 2)),
    }
    return msgspec.json.encode(msgspec.json.decode(posted.body) | changes)


def _message(random: Random) -> bytes:
    subject = random.choice((b"pl.team.new.plan", b"pl.team.new.other.plan", b"pl.team.new.\xff", b"pl.team.want.plan"))
    head = b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: %d\r\nNats-Msg-Id: ann_1-5\r\nNats-Sequence: %d\r\n"
    stamp = b"Nats-Time-Stamp: 2026-11-27T02:41:44.665989048Z\r\n\r\n"
    return subject + b"\n" + head % (random.choice((4, 0, 99)), random.choice((5, 1, 2**63))) + stamp + _body(random)


def _reply(random: Random) -> bytes:
    replies = (
        {"stream": "punch-team", "seq": 5},
        {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 3"}, "seq": 0},
        {"message": {"subject": "pl.team.log.plan", "seq": 5}},
        {
            "config": build_settings("team", 1),
            "state": {"subjects": {"pl.team.log.plan": 3}},
            "total": 1,
            "ts": "2026-11-27",
        },
        {"member": "ann_1", "lists": ["plan"], "stuck": {"plan": 3}},
        {"member": "ann_1", "round_trip_s": 0.01},
    )
    return b"pl.team.new.plan\nNATS/1.0 404 none\r\n\r\n" + msgspec.json.encode(random.choice(replies))


def _row(random: Random) -> bytes:
    row = {"n": random.choice((5, 1, -5, 2**63 - 1, None)), "nonce": random.choice(("ann_1-5", "", None)), "size": 9}
    if random.random() < 0.2:
        row["body"] = random.choice((None, 5, "text"))
    return msgspec.json.encode(row) + b"\n" + _body(random)


def _notice(random: Random) -> bytes:
    notice: dict[str, Any] = {"what": random.choice(("post", "want", "beat", "echo")), "by": "ann_1", "list": "plan"}
    notice |= {"n": random.choice((1, 2**63, -1)), "round_trip_s": random.choice((0.1, -1, 1e300))}
    return msgspec.json.encode(notice | {"beat": {"member": "ann_1", "stuck": {"plan": 3}}})


_NAMES = {method.params: name for name, method in METHODS.items()}
_ODD = [case.frame for case in chain(malformed.values(), malformed.integers(), malformed.envelopes())]
SEEDS: dict[str, tuple[Callable[[Random], bytes], ...]] = {
    "frames": (_stream, _stream, lambda random: random.choice(_ODD)),
    "dispatch": (_requests, _requests, lambda random: random.choice(_ODD)),
    "reducer": (_events,),
    "escaper": (_text,),
    "nats": (_message, _message, _reply),
    "postgres": (_row, _row, _notice),
}


def _mutate(data: bytes, random: Random) -> bytes:
    out = bytearray(data)
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        place = random.randrange(len(out) + 1)
        kind = random.randrange(6)
        if kind == 0 and place < len(out):
            out[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            out[place:place] = random.choice(_SNIPPETS + _NUMBERS)
        elif kind == 2:
            del out[place : place + random.randint(1, 20)]
        elif kind == 3:
            end = min(len(out), place + random.randint(1, 60))
            out[place:place] = out[place:end] * random.choice((1, 1, 40))
        elif kind == 4:
            out[place : place + random.randint(1, 4)] = random.choice(_NUMBERS)
        else:
            del out[place:]
    return bytes(out[:_LONGEST])


def _inputs(target: str, random: Random) -> Iterator[bytes]:
    while True:
        yield _mutate(random.choice(SEEDS[target])(random), random)


def _try(target: str, data: bytes) -> None:
    try:
        TARGETS[target](data)
    except Exception as error:
        with tempfile.NamedTemporaryFile(prefix=f"fuzz-{target}-", delete=False) as kept:
            kept.write(data)
        raise Violation(f"{target}: {error!r}; the input is in {kept.name}") from error


def _run_seeded(target: str, options: Options) -> int:
    """Mutate inputs until the given time has passed or the given number is reached; return the number of inputs."""
    began = time.monotonic()
    for done, data in enumerate(_inputs(target, options.random(target))):
        if done >= options.size if options.seconds is None else time.monotonic() - began >= options.seconds:
            return done
        _try(target, data)
    raise AssertionError("there is no end of inputs")


def _run_guided(target: str, options: Options, seconds: float) -> int:
    """Fuzz in a separate process, guided by coverage and starting from generated inputs; return the number of runs."""
    with tempfile.TemporaryDirectory(prefix="pl-fuzz-") as corpus:
        for number, data in zip(range(300), _inputs(target, options.random(target)), strict=False):
            Path(corpus, str(number)).write_bytes(data)
        flags = [f"-max_total_time={seconds:g}", f"-seed={options.seed}", f"-max_len={_LONGEST}", "-timeout=20"]
        command = [sys.executable, "-m", "punchlist_faults.fuzz_guided", target, *flags, "-print_final_stats=1", corpus]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise Violation(f"{target}: {done.stderr[-3000:]}")
    found = [line.split()[-1] for line in done.stderr.splitlines() if "number_of_executed_units" in line]
    return int(found[0])


def run(options: Options) -> Figures:
    guided = options.seconds is not None and importlib.util.find_spec("atheris") is not None
    figures: Figures = {"led by": "coverage (atheris)" if guided else "seeded mutation"}
    for target in TARGETS:
        if options.only in ("", target):
            figures[f"inputs: {target}"] = (
                _run_guided(target, options, options.seconds)
                if guided and options.seconds is not None
                else _run_seeded(target, options)
            )
    return figures
