"""`punch ui`: live full-screen view of all lists, with textual (the extra `ui`)."""
