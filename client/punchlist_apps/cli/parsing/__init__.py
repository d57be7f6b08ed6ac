"""Parses a command line into a command and its arguments."""
