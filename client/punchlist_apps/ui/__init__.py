"""`punch ui`: every list on a full screen, live, with textual (the extra `ui`)."""
