"""What `punch` puts on a machine: units, completions, plugins of editors, configurations of servers."""
