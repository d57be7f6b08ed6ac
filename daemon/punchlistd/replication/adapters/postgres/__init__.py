"""The shared log in PostgreSQL. Only this package imports the dependencies of the extra `postgres`."""
