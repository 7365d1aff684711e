"""Detect a project's tests, what runs them, and with which interpreter."""
