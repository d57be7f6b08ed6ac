"""Reads: queries of lists, messages, events and text."""
