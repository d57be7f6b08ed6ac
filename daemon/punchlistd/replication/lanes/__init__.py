"""Lanes: what one machine does with a shared list, call by call and post by post."""
