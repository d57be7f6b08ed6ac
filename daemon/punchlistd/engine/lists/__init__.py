"""Lists in memory: loading, name resolution and access, and history."""
