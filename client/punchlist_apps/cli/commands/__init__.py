"""Commands of `punch`. Each `run_NAME` runs one and returns its exit code."""
