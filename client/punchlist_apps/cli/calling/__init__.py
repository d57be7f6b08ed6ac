"""How commands reach the daemon: single calls, clients, pages of events."""
