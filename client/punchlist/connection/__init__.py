"""One connection to the daemon: finding the socket, starting the daemon, speaking the protocol."""
