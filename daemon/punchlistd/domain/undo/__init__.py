"""Undo: what events did to a list, and the events that take it back. Pure."""
