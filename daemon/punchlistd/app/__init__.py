"""A daemon as a whole: its parts made and joined, its run, and what only the whole can answer."""
