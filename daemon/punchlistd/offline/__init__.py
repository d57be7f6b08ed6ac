"""Log files that no daemon serves: checked, repaired, restored, read from a copy."""
