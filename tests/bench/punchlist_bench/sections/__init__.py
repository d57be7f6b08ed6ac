"""What is measured, a module per section; each has `run(bench) -> list[Row]`."""
