"""Honest patches: true fixes of small real bugs, and seeded mutations of small real programs with their own tests."""
