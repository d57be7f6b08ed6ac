"""What can be asked and what comes back, once for all clients, without input or output."""
