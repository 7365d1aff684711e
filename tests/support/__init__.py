"""Our own harness: scripted providers, whole runs in memory, servers, and commands as a user types them."""
