"""Readers for the reports and tracebacks of test runs."""
