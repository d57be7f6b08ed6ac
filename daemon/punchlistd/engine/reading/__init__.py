"""What is asked without changing anything."""
