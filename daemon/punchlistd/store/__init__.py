"""The event log behind a port: in memory, and durable in SQLite."""
