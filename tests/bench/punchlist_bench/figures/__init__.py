"""Figures that are written into pages of docs, each measured by a module with `measure(quick=…) -> str`."""
