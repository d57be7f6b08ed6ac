"""Interprets messages with rules alone. `reading` and `replies` are pure; `phrases` and `words` are their tables."""
