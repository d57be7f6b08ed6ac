"""Files that `punch` installs or writes: units, completions, editor plugins and server configurations."""
