"""Interprets messages by rules alone. `reading` and `replies` are pure; `phrases` and `words` are their tables."""
