"""What happens to a log that is not well, and how copies of one that is are made."""
