"""The evidence of an ended run."""
