"""From a model's words to edits."""
