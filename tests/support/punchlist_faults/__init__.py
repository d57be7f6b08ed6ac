"""Programs that break things on purpose and check that the promises of RELIABILITY.md hold.

`runner.PROGRAMS` lists them and `make fault NAME=…` runs one. Each is a module with a `run(options) -> figures`, which
sets up its world, lets clients work while something breaks, and raises a `Violation` if a promise wasn't kept.
"""
