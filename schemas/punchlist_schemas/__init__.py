"""The contract between daemon and clients: framing, envelopes, methods, events, errors and the path of the socket."""
