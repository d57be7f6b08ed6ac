"""`punch web`: task lists over HTTP, for browsers and programs on this machine. A client of the daemon."""
