"""Runs, journal, blobs and snapshots: the ports, and blobs in a directory."""
