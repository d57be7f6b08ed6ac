"""Builds what users install: a wheel, an sdist, a single file and a Debian package. `make dist` runs it."""
