"""`punch run` and `punch gate`: run a command for each task."""
