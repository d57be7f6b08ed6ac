"""One module for each dialect, holding a `DIALECT`. A new file here is a new dialect; nothing else names them."""
