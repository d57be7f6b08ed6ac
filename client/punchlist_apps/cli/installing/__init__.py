"""Files that `punch` installs or writes: units, completions, editor plugins, server configurations."""
