"""Implementations of the shared log's port on real servers, with a folder for each kind of server."""
