"""Commands of `punch`. Each `run_NAME` runs one command and returns its exit code."""
