"""Sandboxes that are kept warm between test runs."""
