"""The process itself: its lock, limits, log and status line, and what ends it when it is not whole."""
