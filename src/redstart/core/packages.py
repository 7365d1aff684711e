"""Packages that a program asks for: which may be installed, and what was installed."""

from __future__ import annotations

from redstart.core.noun import Noun


class Packages(Noun):
    """What may be installed for a program that is made or changed."""

    allow: dict[str, tuple[str, ...]] = {}
    """Names by language that nobody is asked about."""
    approve: bool = False
    """Whether what is unknown, and not suspicious, is approved beforehand."""


class Installed(Noun):
    """The environment that was made for what a program asks for."""

    asked: str
    """Names what it was made for: the hash of the files that say what the program depends on."""
    environment: str
    """Blob: the `Environment` that the tests run in."""
    locks: dict[str, str] = {}
    """By the name of the file: blob of a lock, every package with its version and hash."""
