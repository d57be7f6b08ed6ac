"""The edge: sockets, connections and the service manager."""
