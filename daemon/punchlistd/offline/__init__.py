"""Work on log files without a running daemon: verification, repair, restore and read-only copies."""
