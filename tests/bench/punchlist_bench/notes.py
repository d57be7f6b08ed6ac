"""Introductions of the sections of docs/performance.md, valid for every run."""
# ruff: noqa: E501 - Markdown has one sentence a line

NOTES = {
    "durable": """\
Redis, which is written in C, stores the same bytes with XADD and HSET in one script, with `appendfsync always`. Its client builds the task and the event.
"Redis, same work" does as much of punchlist's work as a script can: it checks the title or the transition, numbers the task, version and event, and encodes the task, the event and the response.
The script has no idempotency keys, dependencies, checksum chain, pushes or undo.
[Stages](#stages) shows where punchlist's time goes.
With a single client, each call bears the whole cost of a commit: the disk flush, and a processor that has gone idle while waiting.

""",
    "stages": """\
Processor time in microseconds per call: each step alone, and a real daemon under 64 clients.
The daemon's total exceeds the sum because it includes the event loop, the connection's bookkeeping, and the index, which is written after the log.
A whole call to Redis takes little more time than the socket, the commit and decoding alone take in punchlist. To match it, the domain, the checksum and the response would have to cost almost nothing.
A change that shares its commit makes about eighty function calls, which `tests/system/journeys/test_costs.py` counts to detect additional ones. Their cost depends on the interpreter's speed.

How Python was built matters more than its version.
Debian's 3.11, built with profile-guided optimization, takes about a tenth less time per call than a plain build of 3.11.
Plain builds of 3.12 and 3.13 are no faster than a plain build of 3.11, and Debian's 3.13 and 3.14 are no faster than its 3.11.
`punch doctor` reports whether the Python in use is a plain build.

Compiled modules were tried and rejected: changes, which wait for the disk, gain too little to justify a second kind of wheel.
With framing, domain, log lines, connection, router, transaction and writer compiled by Cython from the same sources, `task.add` and `task.set_status` take no less time than before, and `task.get` executes as many instructions as before, within 2 %.
Running bytecode takes a quarter of a call's time. The rest is spent on dictionaries, memory, msgspec, SQLite, the event loop and the kernel. In addition, compiled code lacks the interpreter's inline caches for name lookups.
mypyc rejects the writer (`except*`), the output (asynchronous generators) and the fold, whose functions are generated from source text.
With the thirteen modules that it accepts, including connection and router, `task.get` takes 0.9 times as long with 64 clients (0.83 times with pipelined calls), and lists and changes take 0.92 to 0.98 times as long.

Each commit checks whether its files were replaced, and records the log's position before the response.
Watching the file names with inotify, or recording the position after the response, would save a single client a few microseconds.
However, inotify does not report a write through a memory map, and a kill could leave an acknowledged change without its record.

""",
    "reads": """\
The bare protocol decodes one typed message and encodes another.
punchlist decodes a frame as arbitrary JSON, rejects repeated names and numbers that other parsers would round, and converts its parameters.
Then it looks up the method, conversation and task, and checks access.

""",
}
