"""Signatures, and knowing when a run is stuck."""
