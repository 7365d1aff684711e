"""Servers that a trial fleet starts on this machine."""
