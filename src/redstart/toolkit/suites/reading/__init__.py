"""Reading reports and tracebacks of test runs."""
