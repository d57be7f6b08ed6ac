"""The commands in groups; each `run_NAME` does one and returns its exit code."""
