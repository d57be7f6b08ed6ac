"""`punch run`: a command for each task."""
