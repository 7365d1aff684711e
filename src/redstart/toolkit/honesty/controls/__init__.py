"""Negative controls: tests altered so that they must fail."""
