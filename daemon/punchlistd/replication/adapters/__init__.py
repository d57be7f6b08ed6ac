"""The port of the shared log over real servers, a folder for each kind."""
