"""The port that installs packages. Nothing else can reach a package index, and it runs no code of any package."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field

from redstart.core.frozen import FrozenValue


class Requirement(FrozenValue):
    """A package that a project asks for."""

    language: str
    """The key of its language."""
    name: str
    """As the index spells it: lower case, in Python with single hyphens."""
    text: str
    """As passed to the installer: for Python the whole line, for Node.js the range of versions."""
    path: str
    """The file that asks for it."""
    kind: str = ""
    """The section of `package.json` that names it; empty for Python."""
    installed: bool = True
    """False for a package that only a build of the project needs: it is checked like the rest, but not installed."""


class PackageRefusal(FrozenValue):
    name: str
    """The package; empty if no particular package is refused."""
    reason: str
    """A sentence for people that names the package."""


class Package(FrozenValue):
    """A package that is installed, either requested or as a dependency."""

    name: str
    version: str
    hash: str
    """As the lock file writes it: `sha256:…` in hexadecimal for Python, `sha512-…` in base 64 for Node.js."""


class InstallRequest(FrozenValue):
    language: str
    requirements: tuple[Requirement, ...]
    trusted: tuple[str, ...] = ()
    """Names on the allow-list or approved by a person: they may include a plugin, or a script that is not run."""
    own: tuple[str, ...] = ()
    """The project's own name and those of its modules, which no package may take."""
    python: str = ""
    """The interpreter for which Python packages are installed; empty for redstart's own."""
    lock: str = Field(default="", exclude_if=lambda text: not text)
    """The versions of packages that come with the requested ones, as the language's installer reads them. The packages
    then supplement an environment that contains the rest; empty for an environment of its own."""


class InstallResult(FrozenValue):
    """The result of an installation. If anything was refused, nothing is installed and the other fields are empty."""

    key: str = ""
    """Identifies the environment: the hash of its lock, and of the interpreter or Node.js it is for."""
    folder: str = ""
    """Where it lies on this machine, complete; read-only for the tests."""
    python: str = ""
    """Its interpreter; empty for Node.js."""
    lock: str = ""
    """Every package with its version and hash, without the address of any index."""
    packages: tuple[Package, ...] = ()
    refused: tuple[PackageRefusal, ...] = ()


class Installer(Protocol):
    def prepare(self, request: InstallRequest) -> InstallResult:
        """Resolve, fetch, inspect and install the packages; reuse an environment that exists.

        Runs no code of any package. `refused` names each package that cannot or must not be installed, with the reason.
        Raises `PortError` if the index cannot be reached, and `ConfigError`, with the remedy, if the installing program
        is missing.
        """
        ...


class Installs(Protocol):
    """The installer as a step uses it: journaled, and off the event loop."""

    async def prepare(self, request: InstallRequest) -> InstallResult:
        """See `Installer.prepare`. Raises `Needs` for a driver that may not install."""
        ...
