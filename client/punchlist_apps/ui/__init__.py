"""`punch ui`: a live full-screen view of all lists, built on textual (the extra `ui`)."""
