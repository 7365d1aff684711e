"""The SQL adapters. No other package contains SQL."""
