"""One connection to the daemon: finds the socket, starts the daemon, and implements the protocol."""
