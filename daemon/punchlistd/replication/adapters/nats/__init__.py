"""The shared log in NATS JetStream; it alone imports the extra `shared`."""
