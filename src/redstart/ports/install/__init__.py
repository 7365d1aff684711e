"""Installing what a project asks for."""
