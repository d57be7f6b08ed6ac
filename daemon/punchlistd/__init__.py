"""The daemon: keeps conversations' event logs, decides what is asked of them, pushes what happened."""

__version__ = "0.2.0.dev0"
