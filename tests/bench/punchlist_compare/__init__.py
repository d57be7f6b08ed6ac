"""Compares punchlist with other task lists: the same work, in turn, on one machine."""
