"""What was learned: the port."""
