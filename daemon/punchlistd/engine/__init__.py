"""From a typed call to its response: stamping, the single writer, and the cursors of subscribers."""
