"""The shared log in NATS JetStream. Only this package imports the dependencies of the extra `shared`."""
