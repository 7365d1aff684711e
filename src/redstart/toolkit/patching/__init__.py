"""From a model's words to edits, and from edits to a new tree."""
