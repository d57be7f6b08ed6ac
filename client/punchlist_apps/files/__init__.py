"""Task files of other programs: imported once, or mirrored."""
