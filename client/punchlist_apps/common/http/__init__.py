"""What every HTTP server of ours shares: who may speak to it, what is signed, where it listens, how it refuses."""
