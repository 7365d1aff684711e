"""Time and identity: the port and its adapters."""
