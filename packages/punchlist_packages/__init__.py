"""Makes what people install: wheel, sdist, a single file, a Debian package. `make dist` runs it."""
