"""Undo: which changes an undo selects, and the events that reverse them. Pure."""
