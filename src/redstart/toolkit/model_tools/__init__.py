"""Tool calls by which a model reads a snapshot, and the probes that it requests instead of edits."""
