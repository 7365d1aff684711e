"""The packages that a project requests: whether they may be installed, and how, without running any of their code."""
