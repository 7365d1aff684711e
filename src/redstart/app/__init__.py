"""Use cases, settings, and the one place that names adapters."""
