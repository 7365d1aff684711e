"""What a project asks for: whether it may be installed, and how it is, without running any of it."""
