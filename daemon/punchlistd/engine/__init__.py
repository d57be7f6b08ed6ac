"""From a typed call to its answer: stamping, the single writer, and the cursors of those who watch."""
