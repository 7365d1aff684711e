"""Find the one place in a file that an edit means."""
