"""What happens to lists because time has passed."""
