"""`punch web`: the lists over HTTP for browsers, scripts and other programs of this machine. A client of the daemon."""
