"""Changes: from the queue to the commit, the answer and the push."""
