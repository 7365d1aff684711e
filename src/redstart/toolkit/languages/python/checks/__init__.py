"""Checks of Python code: ruff, bandit, and rules of our own."""
