"""Tripwires on Python code and on data files that it could read: tests' inputs and answers are read as literals."""
