"""The nouns. Frozen values, no behaviour that touches the world, and no import of anything else of ours."""
