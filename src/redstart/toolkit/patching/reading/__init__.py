"""Read edits from a model's answer."""
