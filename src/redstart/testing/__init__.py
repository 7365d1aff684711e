"""For authors of adapters: contract suites, and the fakes that they need."""
