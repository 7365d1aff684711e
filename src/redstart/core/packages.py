"""Packages that a program asks for: which may be installed, and what was installed."""

from __future__ import annotations

from pydantic import Field

from redstart.core.noun import FrozenValue


class Packages(FrozenValue):
    """What may be installed for a program that is made or changed."""

    allow: dict[str, tuple[str, ...]] = {}
    """Names by language that nobody is asked about."""
    approve: bool = False
    """Whether what is unknown, and not suspicious, is approved beforehand."""


class PackageRequest(FrozenValue):
    """A package that a plan wants to make a program with."""

    name: str
    reason: str = ""
    """Why the program needs it, in the model's words."""


class Installed(FrozenValue):
    """The environment that was made for what a program asks for."""

    asked: str
    """Names what it was made for: the hash of the files that say what the program depends on."""
    environment: str
    """Blob: the `Environment` that the tests run in."""
    locks: dict[str, str] = {}
    """By the name of the file: blob of a lock, every package with its version and hash."""
    packages: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names of the packages that the plan of a new program asked for: the program and its tests may import them."""
