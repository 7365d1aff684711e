"""Failure signatures, lessons, and the detection of stuck runs."""
