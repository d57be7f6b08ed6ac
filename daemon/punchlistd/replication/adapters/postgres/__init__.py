"""The shared log in PostgreSQL; it alone imports the extra `postgres`."""
