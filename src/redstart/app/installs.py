"""Install a project's dependencies from the indexes that the user's pip and npm are configured for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.manager import get_manager

FOLDER = "installs"
"""A directory of Redstart's home with one folder per environment, named by the hash of its lock."""


class IndexInstaller:
    """The installer that downloads packages. Environments stay in `home / FOLDER` for every run with the same lock."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._install_folder, self._environ = home / FOLDER, environ

    def prepare(self, request: InstallRequest) -> InstallResult:
        return get_manager(request.language).prepare(request, self._install_folder, self._environ)
