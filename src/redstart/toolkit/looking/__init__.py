"""Looks around in a snapshot that a model asks for, and the probes that it asks for instead of edits."""
