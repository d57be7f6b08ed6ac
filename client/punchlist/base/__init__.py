"""Small helpers of the library and the applications. They import nothing from this project but the schemas."""

__version__ = "0.2.0.dev0"
