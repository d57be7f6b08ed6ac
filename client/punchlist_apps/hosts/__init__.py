"""Agent hosts: the text that hooks add to a model's context, and the hosts' configuration files."""
