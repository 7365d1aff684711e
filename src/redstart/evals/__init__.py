"""Evaluation: tasks as data, sealed workspaces, grading by our own verdict, figures with confidence intervals."""
