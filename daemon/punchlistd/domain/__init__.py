"""The pure middle: what may be asked, what then happened, and what is true now. No clock, no ids, no I/O."""
