"""Finding, running and reading test suites."""
