"""One suite a port. Subclass it in a test module and say how to make the adapter."""
