"""`make demo`: two agents and a person share one list, and the daemon is killed while they work."""
