"""Contract suites for authors of adapters, and the fakes that they need."""
