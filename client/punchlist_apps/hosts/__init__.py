"""What agents' hosts need: a few lines about the list for the model's context, and the hosts' own configuration."""
