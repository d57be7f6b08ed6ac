"""Changes: from the queue to the commit, the response and the push."""
