"""Read edits from a model's answer, and apply them to get a new tree."""
