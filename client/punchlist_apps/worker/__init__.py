"""The worker: one process that serves the sessions of all relays of a user, an installation and a data directory."""
