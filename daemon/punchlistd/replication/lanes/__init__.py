"""Lanes: how one machine processes the calls and posts of a shared list."""
