"""Typed calls and cursors, shared by all clients. No I/O."""
