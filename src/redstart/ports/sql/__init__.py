"""The one place that knows SQL."""
