"""The open database file: its tables, its rows and lines, and the related files on disk."""
