"""Output of commands: lines, live views, errors and exit codes."""
