"""Whose fault a failing test is."""
