"""Task lists in other people's files: pure functions between text and the tasks of one atomic call."""
