"""Sandboxes: the port and its adapters."""
