"""Static checks."""
