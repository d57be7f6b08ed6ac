"""Small things that every room uses, and that import nothing of ours but the schemas."""

__version__ = "0.2.0.dev0"
