"""The daemon as commands reach it: one call, many calls, pages of events."""
