"""The verdict: whether green is green."""
