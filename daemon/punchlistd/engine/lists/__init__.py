"""The lists in use: what is loaded, who may name it, and its past."""
