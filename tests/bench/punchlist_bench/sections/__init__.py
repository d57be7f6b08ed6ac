"""The measured sections, one module each, with a function `run(bench) -> list[Row]`."""
