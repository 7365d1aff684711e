"""The outcome of comparing test results before and after a patch, test by test."""
