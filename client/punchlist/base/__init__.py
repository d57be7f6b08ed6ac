"""Small helpers for the library and the applications. They import nothing from this project except the schemas."""

__version__ = "0.2.0.dev0"
