"""Models: the port and its adapters."""
