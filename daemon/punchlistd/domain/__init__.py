"""The pure core: which calls are allowed, which events they produce, and the resulting state.

It uses no clock, creates no ids and does no I/O.
"""
