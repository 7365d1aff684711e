"""Checks of this machine, of the models, of the services and of the project."""
