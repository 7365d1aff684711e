"""Install Python packages: download wheels, inspect them, then install them into an environment by hash."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from redstart.core.errors import PortError
from redstart.ports.install.port import InstallRequest, InstallResult, Package, PackageRefusal
from redstart.toolkit.installs.judge import suspicion
from redstart.toolkit.installs.names import hyphenated, popular
from redstart.toolkit.installs.stage import StageResult, finish, key_of, place_of, run
from redstart.toolkit.languages.python import pip as pips
from redstart.toolkit.languages.python.packages import KEY, LOCK_NAME
from redstart.toolkit.languages.python.wheels import Wheel, look_into

RUNNER = "pytest"
"""Installed in addition to the project's requirements, because its tests need it."""
_HEAD = "# Every package by its version and hash. Install with: pip install --require-hashes -r requirements.lock\n"
_ABOUT = "import sys, sysconfig; print(sys.version_info[:3], sysconfig.get_platform(), sys._base_executable)"


def prepare_python(request: InstallRequest, home: Path, python: str, environ: Mapping[str, str]) -> InstallResult:
    """Implement `Installer.prepare`. `home` holds the environments; `python` is the interpreter they are for."""
    trusted = {hyphenated(name) for name in (*request.trusted, RUNNER)}
    with tempfile.TemporaryDirectory(prefix="redstart-install-") as scratch:
        stage = Path(scratch)
        asked = [requirement.text for requirement in request.requirements if requirement.installed]
        (stage / "asked.txt").write_text("\n".join([*asked, RUNNER]) + "\n", encoding="utf-8")
        # The resolver must choose for an interpreter that runs no third-party code: one without packages.
        about = _made_venv(stage / "bare", python, environ)
        pip = pips.pip_for(_program(stage / "bare"), environ)
        fetched = _fetched(pip, stage, environ)
        if fetched.code:
            return InstallResult(refused=tuple(pips.refusals(fetched)))
        wheels = [
            look_into(path, trusted=trusted, own=request.own) for path in sorted((stage / "wheels").glob("*.whl"))
        ]
        refused = [*pips.yanked(fetched), *_refused(wheels, trusted, request.own)]
        unknown = [wheel.name for wheel in wheels if wheel.name not in popular(KEY)]
        refused += pips.on_several_indexes(pip, unknown, stage, environ)
        if refused:
            return InstallResult(refused=tuple(dict.fromkeys(refused)))
        return _installed(wheels, stage, home, python, about, environ)


def _fetched(pip: list[str], stage: Path, environ: Mapping[str, str]) -> StageResult:
    """Download every wheel that is needed into a directory, without unpacking any."""
    (stage / "wheels").mkdir()
    command = ("download", "--only-binary", ":all:", "--dest", "wheels", "-r", "asked.txt")
    return run([*pip, *command], stage, environ, pips.QUIET)


def _refused(wheels: list[Wheel], trusted: set[str], own: tuple[str, ...]) -> Iterator[PackageRefusal]:
    ours = {hyphenated(name) for name in own}
    for wheel in wheels:
        if wheel.name not in trusted and (reason := suspicion(wheel.name, KEY, ours)):
            yield PackageRefusal(name=wheel.name, reason=reason)
        yield from (PackageRefusal(name=wheel.name, reason=f"{wheel.name} {fault}.") for fault in wheel.faults)
    brought: dict[str, tuple[str, str]] = {}
    for wheel in wheels:
        for path, digest in wheel.code.items():
            first = brought.setdefault(path, (wheel.name, digest))
            if first[1] != digest:
                yield PackageRefusal(name=wheel.name, reason=f"{wheel.name} and {first[0]} both bring {path}.")


def _installed(
    wheels: list[Wheel], stage: Path, home: Path, python: str, about: str, environ: Mapping[str, str]
) -> InstallResult:
    lock = lock_of(wheels)
    key = key_of(lock, about)
    with place_of(home, key) as (folder, complete):
        program = _program(folder)
        if not complete:
            _made_venv(folder, python, environ)
            (folder / LOCK_NAME).write_text(lock, encoding="utf-8")
            command = ("install", "--no-index", "--no-deps", "--only-binary", ":all:", "--require-hashes")
            found = ("--find-links", str(stage / "wheels"), "-r", str(folder / LOCK_NAME))
            done = run([*pips.pip_for(program, environ), *command, *found], stage, environ, pips.QUIET)
            if done.code:
                return InstallResult(refused=tuple(pips.refusals(done)))
            finish(folder)
    packages = tuple(Package(name=wheel.name, version=wheel.version, hash=f"sha256:{wheel.sha256}") for wheel in wheels)
    return InstallResult(key=key, folder=str(folder), python=str(program), lock=lock, packages=packages)


def lock_of(wheels: list[Wheel]) -> str:
    """Build the lock file's text, which names no index and no path."""
    lines = (
        f"{wheel.name}=={wheel.version} \\\n    --hash=sha256:{wheel.sha256}\n"
        for wheel in sorted(wheels, key=lambda wheel: wheel.name)
    )
    return _HEAD + "".join(lines)


def _made_venv(folder: Path, python: str, environ: Mapping[str, str]) -> str:
    """Create an environment without packages; return what distinguishes its interpreter from others."""
    made = run([python, "-I", "-S", "-m", "venv", "--without-pip", str(folder)], folder.parent, environ)
    said = run([str(_program(folder)), "-I", "-S", "-c", _ABOUT], folder.parent, environ) if made.code == 0 else made
    if said.code:
        raise PortError(
            f"cannot create an environment with {python}: {said.output.strip()[-200:]}",
            remedy="name another interpreter with --python",
        )
    return said.output.strip()


def _program(folder: Path) -> Path:
    return folder / "bin" / "python"
