"""Formats tasks, events and reasons for a terminal."""
