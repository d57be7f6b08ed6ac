"""How commands reach the daemon: single calls, client objects and pages of events."""
