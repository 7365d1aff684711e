"""Snapshots, workspaces and git."""
