"""The port to the stage that installs packages: the only one with a way to an index, and it runs none of their code."""

from __future__ import annotations

from typing import Protocol

from redstart.core.noun import FrozenValue


class Requirement(FrozenValue):
    """One package that a project asks for."""

    language: str
    """By the key of its language."""
    name: str
    """As the index spells it: lower case, in Python with single hyphens."""
    text: str
    """As it is handed to the installer: for Python the whole line, for Node.js the range of versions."""
    path: str
    """The file that asks for it."""
    kind: str = ""
    """The section of `package.json` that names it; empty for Python."""
    installed: bool = True
    """False for what only a build of the project would need: judged like the rest, and not installed."""


class PackageRefusal(FrozenValue):
    name: str
    """The package; empty where it is none in particular."""
    reason: str
    """A sentence for a person, the package's name in it."""


class Package(FrozenValue):
    """One that is installed, asked for or brought along."""

    name: str
    version: str
    hash: str
    """As the lock writes it: `sha256:…` in hexadecimal for Python, `sha512-…` in base 64 for Node.js."""


class InstallRequest(FrozenValue):
    language: str
    requirements: tuple[Requirement, ...]
    trusted: tuple[str, ...] = ()
    """Names on the allow-list or approved by a person: they may bring a plugin, or a script that is not run."""
    own: tuple[str, ...] = ()
    """The project's own name and those of its modules, which no package may take."""
    python: str = ""
    """The interpreter for which Python packages are installed; empty for redstart's own."""


class InstallResult(FrozenValue):
    """What the stage made. Where anything was refused nothing is installed, and the rest is empty."""

    key: str = ""
    """Names the environment: the hash of its lock, and of the interpreter or Node.js it is for."""
    folder: str = ""
    """Where it lies on this machine, complete; read-only for the tests."""
    python: str = ""
    """Its interpreter; empty for Node.js."""
    lock: str = ""
    """Every package with its version and hash, and no address of any index."""
    packages: tuple[Package, ...] = ()
    refused: tuple[PackageRefusal, ...] = ()


class Installer(Protocol):
    def prepare(self, request: InstallRequest) -> InstallResult:
        """Resolves, fetches, looks into and installs the packages; an environment that exists is used again.

        No code of any package is run. What cannot or must not be installed is in `refused`, by name and with the
        reason. Raises `PortError` where the index cannot be reached, and `ConfigError`, with the remedy, where the
        program that installs is missing.
        """
        ...


class Installs(Protocol):
    """The installer as a step asks it: journaled, and off the event loop."""

    async def prepare(self, request: InstallRequest) -> InstallResult:
        """See `Installer.prepare`. Raises `Needs` for a driver that may not install."""
        ...
