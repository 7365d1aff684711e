"""Servers that a trial of a fleet starts on this machine."""
