"""Posts: how a change of a shared list is written down, posted and refused."""
