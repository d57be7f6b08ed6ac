"""The process itself: its lock, limits, logging, status line, and detection of fatal conditions."""
