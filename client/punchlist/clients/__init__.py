"""What `punchlist.connect()` and `connect_async()` give."""
