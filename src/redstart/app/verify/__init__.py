"""The verdict on anybody's change: no model takes part, and nothing is written to the repo."""
