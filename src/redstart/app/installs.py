"""Installing what a project asks for, from the indexes that the user's pip and npm are set to."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from redstart.ports.install.port import InstallRequest, Language, Prepared
from redstart.toolkit.installs.node import prepare_node
from redstart.toolkit.installs.python import prepare_python

FOLDER = "installs"
"""In redstart's home: one folder an environment, named by the hash of its lock."""


class IndexInstaller:
    """The installer that fetches. Environments stay in `home / FOLDER` and serve every run that has the same lock."""

    def __init__(self, home: Path, environ: Mapping[str, str]) -> None:
        self._home, self._environ = home / FOLDER, environ

    def prepare(self, request: InstallRequest) -> Prepared:
        if request.language is Language.node:
            return prepare_node(request, self._home, self._environ)
        return prepare_python(request, self._home, request.python or sys.executable, self._environ)
