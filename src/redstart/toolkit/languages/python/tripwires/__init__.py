"""Tripwires on Python code, and on data files that it could read: what tests ask is read as Python's literals."""
