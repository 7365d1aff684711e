"""Fakes and contract suites. They ship, so that others test their adapters as we do."""
