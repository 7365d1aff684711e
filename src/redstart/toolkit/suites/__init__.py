"""Find and run test suites, and read their results."""
