"""Its place makes the project's root importable."""
