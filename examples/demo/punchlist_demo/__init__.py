"""`make demo`: a recorded session against a private daemon that is killed in the middle."""
