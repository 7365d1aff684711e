"""A greengrocer's till."""
