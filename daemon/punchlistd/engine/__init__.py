"""The path from a typed call to its response: stamping, the single writer, and the subscribers' cursors."""
