"""Helpers for several kits: code files, git, tracebacks and text. Every kit may import this package; it imports no
kit."""
