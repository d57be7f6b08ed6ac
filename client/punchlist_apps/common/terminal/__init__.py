"""How tasks, events and reasons read on a terminal."""
