"""The database file while it is open: its tables, its rows and lines, and what surrounds it on the disk."""
