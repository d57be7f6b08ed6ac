"""The daemon as a whole: creates and connects its parts, runs them, and answers calls that involve all of them."""
