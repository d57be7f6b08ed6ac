"""What applications share: how a terminal shows tasks, how our HTTP servers are guarded."""
