"""Check what Redstart needs on this machine. A check changes nothing: it creates no directory and no file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from redstart.app.doctor.models import check_models
from redstart.app.doctor.project import check_project
from redstart.app.doctor.results import DoctorCheck, Examination, Health, build_examination
from redstart.app.doctor.services import check_data, check_servers
from redstart.app.images import build_container_options, build_sandbox_choice, list_runtimes
from redstart.app.plugins import SANDBOXES, list_plugin_names, make_sandbox
from redstart.app.settings import SandboxSettings, load
from redstart.core.errors import ConfigError, SandboxUnavailable
from redstart.ports.model.endpoints import PLUGIN
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.docker.sandbox import Docker
from redstart.ports.sandbox.docker.spec import GVISOR
from redstart.ports.sandbox.seatbelt import Seatbelt
from redstart.ports.sandbox.selection import ANYWAY, BWRAP, DOCKER, list_lack_texts, order
from redstart.ports.sandbox.self_test import Leaks, Make, prove

OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 30)
PROGRAM_SECONDS = 10.0
UNTESTED_MACOS = "macOS: untested"


def examine(*, online: bool = False, project: Path | None = None, platform: str = sys.platform) -> Examination:
    """Run all checks. With `online`, ask each configured model one small question, which may cost a little."""
    checks = [*_check_machine(platform)]
    try:
        settings = load(project=project)
    except ConfigError as error:
        checks += _check_sandboxes(SandboxSettings(), platform)
        checks.append(_check("settings", "settings", Health.fail, str(error), error.remedy))
    else:
        checks += _check_sandboxes(settings.sandbox, platform)
        checks += check_data(settings)
        checks += check_servers(settings, os.environ)
        if project is not None:
            checks += check_project(project, settings, os.environ)
        checks += check_models(settings, os.environ, online=online)
    return build_examination(tuple(checks))


def _check(group: str, name: str, health: Health, detail: str, remedy: str = "") -> DoctorCheck:
    return DoctorCheck(group=group, name=name, health=health, detail=detail, remedy=remedy)


# -- the machine -------------------------------------------------------------------------------------------------------


def _check_machine(platform: str) -> Iterator[DoctorCheck]:
    if platform == "darwin":
        # This row is about the machine; each sandbox has its own row.
        remedy = "its own sandbox has not been tested yet; use the Docker sandbox: --sandbox docker"
        yield _check("machine", "system", Health.warn, UNTESTED_MACOS, remedy)
    yield check_python(sys.version_info[:3])
    yield _check_git()
    yield _check_optional_program("ripgrep", "rg", "large repos are searched more slowly", "install ripgrep")
    yield _check_optional_program("node", "node", "only Node.js projects need it", "install Node.js 20 or newer")


def _check_optional_program(name: str, program: str, consequence: str, remedy: str) -> DoctorCheck:
    if not shutil.which(program):
        return _check("machine", name, Health.absent, f"not installed; {consequence}", f"optional: {remedy}")
    try:
        printed = subprocess.run(
            (program, "--version"), capture_output=True, text=True, check=True, timeout=PROGRAM_SECONDS
        ).stdout
        version = re.search(r"\d+(?:\.\d+)+", printed)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        version = None
    if version is None:
        return _check("machine", name, Health.warn, f"`{program} --version` does not work", f"reinstall {name}")
    return _check("machine", name, Health.ok, version[0])


def check_python(version: tuple[int, ...]) -> DoctorCheck:
    version_text = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return _check("machine", "python", Health.fail, f"{version_text} is too old", "use Python 3.11 or newer")
    return _check("machine", "python", Health.ok, version_text)


def _check_git() -> DoctorCheck:
    remedy = f"install git {'.'.join(map(str, OLDEST_GIT))} or newer and put it on PATH"
    try:
        output = subprocess.run(
            ("git", "--version"), capture_output=True, text=True, check=True, timeout=PROGRAM_SECONDS
        ).stdout.strip()
    except FileNotFoundError:
        return _check("machine", "git", Health.fail, "not found", remedy)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        return _check("machine", "git", Health.fail, f"does not work: {error}", remedy)
    version = tuple(int(number) for number in re.findall(r"\d+", output)[:2])
    if version < OLDEST_GIT:
        return _check("machine", "git", Health.fail, f"{output} is too old", remedy)
    return _check("machine", "git", Health.ok, output.removeprefix("git version "))


# -- sandboxes ---------------------------------------------------------------------------------------------------------


def _check_sandboxes(settings: SandboxSettings, platform: str) -> Iterator[DoctorCheck]:
    """Try each sandbox with a program that does its best to escape. The sandbox itself reports why it cannot start."""
    working_tiers: list[str] = []
    first_error: SandboxUnavailable | None = None
    for name, make in _list_sandbox_makers(settings, platform).items():
        try:
            with tempfile.TemporaryDirectory(prefix="redstart-doctor-") as scratch:
                proof = prove(make, Path(scratch))
        except (SandboxUnavailable, ConfigError) as error:
            leaks = isinstance(error, Leaks)
            first_error = first_error or (error if isinstance(error, SandboxUnavailable) else None)
            remedy = error.remedy if leaks else f"optional: {error.remedy}"
            reason = re.sub(r"\[Errno \d+\] ", "", str(error))
            yield _check("machine", name, Health.fail if leaks else Health.absent, f"not available: {reason}", remedy)
        else:
            working_tiers += [] if name.startswith(PLUGIN) else [proof.tier]  # a plug-in is used only if it is named
            detail = f"isolation tested; starts in {proof.start * 1000:.0f} ms"
            yield _check("machine", name, Health.ok, detail)
            for lack in list_lack_texts(proof.sandbox):
                yield _check("machine", "limits", Health.warn, f"{name} lacks {lack.description}", lack.remedy)
    if working_tiers:
        yield _check("machine", "sandbox", Health.ok, f"{working_tiers[0]} is used unless --sandbox selects another")
    else:
        reason, remedy = (
            (str(first_error), first_error.remedy) if first_error else ("there is no sandbox for this system", ANYWAY)
        )
        yield _check("machine", "sandbox", Health.fail, reason, remedy or ANYWAY)


def _list_sandbox_makers(settings: SandboxSettings, platform: str) -> dict[str, Make]:
    """List every backend of this system in the order of `auto`, including gVisor if the Docker daemon has it."""
    choice = build_sandbox_choice(settings, os.environ)
    makers: dict[str, Make] = {}
    for name in order(platform, choice):
        if name != DOCKER:
            makers[name] = Bubblewrap if name == BWRAP else Seatbelt
            continue
        makers[name] = _create_docker_maker(settings)
        if not settings.runtime and GVISOR in list_runtimes(os.environ):
            makers[f"{name}+{GVISOR}"] = _create_docker_maker(settings.model_copy(update={"runtime": GVISOR}))
    for name in list_plugin_names(SANDBOXES):
        makers[f"{PLUGIN}:{name}"] = partial(make_sandbox, f"{PLUGIN}:{name}")
    return makers


def _create_docker_maker(settings: SandboxSettings) -> Make:
    return lambda workspaces, scratch: Docker(workspaces, scratch, build_container_options(settings, os.environ))
