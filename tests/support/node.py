"""npm packages for tests: installed once per lock file, and linked into a repo as a user would have them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

MODULES = "node_modules"
_DONE = "installed"


def cache_folder() -> Path:
    """Return the directory that keeps packages between test runs."""
    cache_home = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache_home) if cache_home else Path.home() / ".cache") / "redstart-tests"


def install_manifest(manifest: Path, cache: Path) -> Path:
    """Install exactly what a directory's package.json and package-lock.json require; return the `node_modules`.

    The lock names versions and hashes for every system but no registry: npm uses the configured one. No package script
    runs. Raises `CalledProcessError` if npm cannot install the packages.
    """
    names = ("package.json", "package-lock.json")
    key = hashlib.sha256(b"\0".join((manifest / name).read_bytes() for name in names)).hexdigest()[:20]
    folder = cache / key
    if (folder / _DONE).exists():
        return folder / MODULES
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as name:
        for item in names:
            shutil.copy(manifest / item, name)
        _run_npm("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=Path(name))
        (Path(name) / _DONE).touch()
        with contextlib.suppress(OSError):  # another process was faster
            Path(name).rename(folder)
            Path(name).mkdir()
    return folder / MODULES


def unpack_package(package: str, cache: Path) -> Path:
    """Fetch a package of the registry once, such as `ms@2.1.3`; return its files. Raises like `installed`."""
    folder = cache / "packages" / package.replace("/", "+")
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            _run_npm("pack", "--silent", package, cwd=Path(name))
            (archive,) = Path(name).glob("*.tgz")
            shutil.unpack_archive(archive, name, filter="data")
            with contextlib.suppress(OSError):
                (Path(name) / "package").rename(folder)
    return folder


def put(modules: Path, repo: Path) -> None:
    """Hard-link the installed packages into the repo: copying them would take seconds per test."""
    try:
        shutil.copytree(modules, repo / MODULES, symlinks=True, copy_function=os.link)
    except (OSError, shutil.Error):
        shutil.rmtree(repo / MODULES, ignore_errors=True)
        shutil.copytree(modules, repo / MODULES, symlinks=True)


def _run_npm(*arguments: str, cwd: Path) -> None:
    program = shutil.which("npm")
    if program is None:
        raise FileNotFoundError("npm is needed for the tests of Node.js projects")
    subprocess.run((program, *arguments), cwd=cwd, check=True, capture_output=True, stdin=subprocess.DEVNULL)
