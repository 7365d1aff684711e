"""Packages that a program requests: which may be installed, and which were installed."""

from __future__ import annotations

from pydantic import Field

from redstart.core.frozen import FrozenValue


class Packages(FrozenValue):
    """What may be installed for a program that a run creates or changes."""

    allow: dict[str, tuple[str, ...]] = {}
    """Names by language that need no approval."""
    approve: bool = False
    """Whether unknown packages are approved in advance, unless they are suspicious."""


class PackageRequest(FrozenValue):
    """A package that a plan requests for a program."""

    name: str
    reason: str = ""
    """Why the program needs it, in the model's words."""


class Installed(FrozenValue):
    """The environment that was created for the packages of a program."""

    asked: str
    """Hash of the manifests that the environment was created for."""
    environment: str
    """Blob: the `Environment` that the tests run in."""
    locks: dict[str, str] = {}
    """Blobs of the lock files by file name: every package with its version and hash."""
    packages: tuple[str, ...] = Field(default=(), exclude_if=lambda names: not names)
    """Names of the packages that the plan of a new program requested: the program and its tests may import them."""
