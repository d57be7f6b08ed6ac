"""The daemon: keeps the event log of all conversations, decides calls, and pushes events to subscribers."""

__version__ = "0.2.0.dev0"
