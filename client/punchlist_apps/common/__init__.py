"""Code shared by the applications: terminal output, HTTP servers, single calls."""
