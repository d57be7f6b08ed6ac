"""Posts: how changes to a shared list are encoded, posted and rejected."""
