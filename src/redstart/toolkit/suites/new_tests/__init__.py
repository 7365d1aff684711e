"""Checks of test files that a model wrote: whether they parse and fail for the right reason."""
