"""Tripwires on JavaScript and TypeScript, and on data files that scripts could read."""
