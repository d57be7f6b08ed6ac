"""What a sentence asks for, by rules alone: `reading` and `replies` are pure, `phrases` and `words` their tables."""
