"""Runs the benchmark: see `run.py --help`."""

import sys

from punchlist_bench.cli import main

if __name__ == "__main__":
    sys.exit(main())
