"""Install Python packages: download wheels, inspect them, then install them into an environment by hash."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from redstart.core.errors import PortError
from redstart.ports.install.port import InstallRequest, InstallResult, Package, PackageRefusal
from redstart.toolkit.installs.approval import explain_suspicion
from redstart.toolkit.installs.names import get_popular_names, hyphenate
from redstart.toolkit.installs.stage import StageResult, compute_key, finish, lock_environment, run
from redstart.toolkit.languages.python import pip as pips
from redstart.toolkit.languages.python.packages import KEY, LOCK_NAME
from redstart.toolkit.languages.python.wheels import Wheel, inspect_wheel

RUNNER = "pytest"
"""Installed in addition to the project's requirements, because its tests need it."""
_HEAD = "# Every package by its version and hash. Install with: pip install --require-hashes -r requirements.lock\n"
_INTERPRETER_QUERY = (
    "import sys, sysconfig; print(sys.version_info[:3], sysconfig.get_platform(), sys._base_executable)"
)


def prepare_python(request: InstallRequest, home: Path, python: str, environ: Mapping[str, str]) -> InstallResult:
    """Implement `Installer.prepare`. `home` holds the environments; `python` is the interpreter they are for."""
    trusted_names = {hyphenate(name) for name in (*request.trusted, RUNNER)}
    with tempfile.TemporaryDirectory(prefix="redstart-install-") as scratch:
        stage = Path(scratch)
        requirements = [requirement.text for requirement in request.requirements if requirement.installed]
        # Packages that supplement an environment come without a runner: their tests use that of the environment.
        others = ["-c locked.txt"] if request.lock else [RUNNER]
        (stage / "asked.txt").write_text("\n".join([*requirements, *others]) + "\n", encoding="utf-8")
        (stage / "locked.txt").write_text(request.lock, encoding="utf-8")
        # The resolver must choose for an interpreter that runs no third-party code: one without packages.
        interpreter_info = _create_venv(stage / "bare", python, environ)
        pip = pips.find_pip(_locate_interpreter(stage / "bare"), environ)
        fetch_result = _fetch_wheels(pip, stage, environ)
        if fetch_result.code:
            return InstallResult(refused=tuple(pips.explain_refusals(fetch_result)))
        wheels = [
            inspect_wheel(path, trusted_names=trusted_names, own_packages=request.own)
            for path in sorted((stage / "wheels").glob("*.whl"))
        ]
        refused = [*pips.find_yanked(fetch_result), *_check_wheels(wheels, trusted_names, request.own)]
        unknown_names = [wheel.name for wheel in wheels if wheel.name not in get_popular_names(KEY)]
        refused += pips.on_several_indexes(pip, unknown_names, stage, environ)
        if refused:
            return InstallResult(refused=tuple(dict.fromkeys(refused)))
        return _install_offline(wheels, stage, home, python, interpreter_info, environ)


def _fetch_wheels(pip: list[str], stage: Path, environ: Mapping[str, str]) -> StageResult:
    """Download every wheel that is needed into a directory, without unpacking any."""
    (stage / "wheels").mkdir()
    command = ("download", "--only-binary", ":all:", "--dest", "wheels", "-r", "asked.txt")
    return run([*pip, *command], stage, environ, pips.QUIET_VARIABLES)


def _check_wheels(
    wheels: list[Wheel], trusted_names: set[str], own_packages: tuple[str, ...]
) -> Iterator[PackageRefusal]:
    own_names = {hyphenate(name) for name in own_packages}
    for wheel in wheels:
        if wheel.name not in trusted_names and (reason := explain_suspicion(wheel.name, KEY, own_names)):
            yield PackageRefusal(name=wheel.name, reason=reason)
        yield from (PackageRefusal(name=wheel.name, reason=f"{wheel.name} {fault}.") for fault in wheel.faults)
    file_owners: dict[str, tuple[str, str]] = {}
    for wheel in wheels:
        for path, digest in wheel.code.items():
            first_owner = file_owners.setdefault(path, (wheel.name, digest))
            if first_owner[1] != digest:
                yield PackageRefusal(name=wheel.name, reason=f"{wheel.name} and {first_owner[0]} both bring {path}.")


def _install_offline(
    wheels: list[Wheel], stage: Path, home: Path, python: str, interpreter_info: str, environ: Mapping[str, str]
) -> InstallResult:
    lock = build_lock(wheels)
    key = compute_key(lock, interpreter_info)
    with lock_environment(home, key) as (folder, is_complete):
        program = _locate_interpreter(folder)
        if not is_complete:
            _create_venv(folder, python, environ)
            (folder / LOCK_NAME).write_text(lock, encoding="utf-8")
            command = ("install", "--no-index", "--no-deps", "--only-binary", ":all:", "--require-hashes")
            source_options = ("--find-links", str(stage / "wheels"), "-r", str(folder / LOCK_NAME))
            result = run(
                [*pips.find_pip(program, environ), *command, *source_options], stage, environ, pips.QUIET_VARIABLES
            )
            if result.code:
                return InstallResult(refused=tuple(pips.explain_refusals(result)))
            finish(folder)
    packages = tuple(Package(name=wheel.name, version=wheel.version, hash=f"sha256:{wheel.sha256}") for wheel in wheels)
    return InstallResult(key=key, folder=str(folder), python=str(program), lock=lock, packages=packages)


def build_lock(wheels: list[Wheel]) -> str:
    """Build the lock file's text, which names no index and no path."""
    lines = (
        f"{wheel.name}=={wheel.version} \\\n    --hash=sha256:{wheel.sha256}\n"
        for wheel in sorted(wheels, key=lambda wheel: wheel.name)
    )
    return _HEAD + "".join(lines)


def _create_venv(folder: Path, python: str, environ: Mapping[str, str]) -> str:
    """Create an environment without packages; return what distinguishes its interpreter from others."""
    venv_result = run([python, "-I", "-S", "-m", "venv", "--without-pip", str(folder)], folder.parent, environ)
    info_result = (
        run([str(_locate_interpreter(folder)), "-I", "-S", "-c", _INTERPRETER_QUERY], folder.parent, environ)
        if venv_result.code == 0
        else venv_result
    )
    if info_result.code:
        raise PortError(
            f"cannot create an environment with {python}: {info_result.output.strip()[-200:]}",
            remedy="choose another interpreter with --python",
        )
    return info_result.output.strip()


def _locate_interpreter(folder: Path) -> Path:
    return folder / "bin" / "python"
