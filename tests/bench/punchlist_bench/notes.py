"""Introductions of the sections of docs/performance.md, valid for every run."""

NOTES = {
    "durable": """\
Redis stores the same bytes in C: XADD and HSET in one script, `appendfsync always`; its client made task and event.
"Redis, same work" does of ours what a script can: it checks the title or the step, numbers task, version and event,
encodes task, event and answer; it knows no idempotency keys, no dependencies, no chain of checksums, no pushes and no
undo. What our calls spend their time on stands under Stages. A client that is alone pays the whole commit for one
call: the flush of the disk, and a processor that has cooled down meanwhile.

""",
    "stages": """\
Microseconds of a processor per call: each step alone, and a real daemon under 64 clients. The daemon's whole exceeds
the sum by the event loop, the connection's bookkeeping, and the index that follows behind the log. Redis's whole call
takes little more than socket, commit and decoding take here together: to be as quick, the domain, the checksum and the
answer would have to cost next to nothing. A change that shares its commit makes about eighty calls of functions
(`tests/system/journeys/test_costs.py` counts them, so that no more come unnoticed): what is left is the
interpreter's speed.

How a Python was built counts for more than its version. Debian's 3.11, built with profile-guided optimization, takes
about a tenth less time per call than a plain build of 3.11; plain builds of 3.12 and 3.13 are no quicker than that of
3.11, and Debian's 3.13 and 3.14 no quicker than its 3.11. `punch doctor` says when the Python in use is a plain build.

Compiled modules were tried and left out: changes, which wait for the disk, gain too little for a second kind of wheel.
With framing, domain, log lines, connection, router, transaction and writer compiled by Cython from the same sources,
`task.add` and `task.set_status` take no less time than before and `task.get` as many instructions, within a fiftieth:
running bytecode is a quarter of a call, the rest is dictionaries, memory, msgspec, SQLite, the event loop and the
kernel, and compiled code goes without what the interpreter remembers at each look-up of a name. mypyc refuses the
writer (`except*`), the output (asynchronous generators) and the fold, whose functions are made from text. With the
thirteen modules that it takes, connection and router among them, `task.get` takes 0.9 of the time under 64 clients
(0.83 if calls are sent ahead), lists and changes 0.92 to 0.98.

Each commit looks whether its files are still what they were, and notes how far the log has come before it is answered.
Watching names by inotify, or noting it behind the answer, would save a client that is alone a few microseconds; the
first does not see a write through a memory map, and with the second a kill could leave an answered change without its
note.

""",
    "reads": """\
The bare protocol decodes one typed message and encodes one. We decode a frame as any JSON, refuse repeated names and
numbers that other readers would round, and convert its parameters. Then method, conversation and task are looked up,
and who may see them.

""",
}
