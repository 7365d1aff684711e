"""What evaluations came to."""
