"""One connection to the daemon: where it is, how it is started, how it is spoken to."""
