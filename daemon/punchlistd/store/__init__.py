"""The event log: its port and its durable implementation in SQLite."""
