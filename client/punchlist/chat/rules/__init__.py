"""What a sentence asks for, by rules alone: `reading.interpret` is pure, `phrases` and `words` are its tables."""
