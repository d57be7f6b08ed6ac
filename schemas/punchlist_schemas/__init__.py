"""What two processes must agree on: framing, envelopes, methods, events, errors and where to meet."""
