"""Small helpers for the whole library and the applications. They import nothing of this project but the schemas."""

__version__ = "0.2.0.dev0"
