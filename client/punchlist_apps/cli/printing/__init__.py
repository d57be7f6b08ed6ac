"""What commands say: lines, live views, failures and exit codes."""
