"""Timers that change lists: deferred tasks that become ready, and finished lists that are cleared."""
