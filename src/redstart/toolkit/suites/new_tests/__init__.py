"""Test files that a model has written: whether they can be read, and fail for the right reason."""
