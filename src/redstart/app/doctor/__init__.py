"""Checks of this machine, the models, the services and the project."""
