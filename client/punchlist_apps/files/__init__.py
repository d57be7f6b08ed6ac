"""Tasks in the files of other programs: read once, or kept equal."""
