"""Work on log files without a running daemon: verification, repair, restore, read-only copies."""
