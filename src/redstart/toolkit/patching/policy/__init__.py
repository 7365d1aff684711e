"""What a patch may not touch."""
