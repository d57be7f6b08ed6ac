"""Shared parts of the HTTP servers: request checks, tokens, connection limits, sockets and errors."""
