"""What this machine has and lacks for redstart. Looking changes nothing: no folder is made and no file written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path

from redstart.app.images import containers, runtimes, wanted
from redstart.app.settings import SandboxSettings, Settings, StepModels, load, public_values, require_model
from redstart.app.wire import connect, embedder_of, embedding_address
from redstart.core.chat import Ask, Message, Role, Tier
from redstart.core.errors import ConfigError, ModelError, SandboxUnavailable, StoreError
from redstart.core.noun import Noun
from redstart.ports.model.providers import ENDPOINTS
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.sandbox.choose import ANYWAY, BWRAP, DOCKER, lacks_of, order
from redstart.ports.sandbox.docker import Docker
from redstart.ports.sandbox.docker_spec import GVISOR
from redstart.ports.sandbox.prove import Leaks, Make, prove
from redstart.ports.sandbox.seatbelt import Seatbelt
from redstart.ports.sql.postgres import revision_at
from redstart.ports.sql.schema import HEAD

VERSION = 1
OLDEST_PYTHON = (3, 11)
OLDEST_GIT = (2, 30)
LITTLE_DISK = 10**9
PROGRAM_SECONDS = 10.0
PING_SECONDS = 20.0
PING_TOKENS = 16
UNTESTED_MACOS = "macOS: untested"
OTHER_HOME = "check who owns it, or set REDSTART_HOME to another folder"


class Health(StrEnum):
    ok = "ok"
    warn = "warn"
    """Redstart works, but not as well as it could, or not for everything."""
    fail = "fail"


class Check(Noun):
    group: str
    name: str
    health: Health
    detail: str
    remedy: str = ""


class Examination(Noun):
    """Every check, by group. `v` changes when a field goes or changes its meaning."""

    v: int = VERSION
    ok: bool
    """Whether nothing failed."""
    checks: tuple[Check, ...]


def examine(*, online: bool = False, project: Path | None = None, platform: str = sys.platform) -> Examination:
    """All checks; with `online` each configured model is asked one small question, which may cost a little."""
    checks = [*_machine(platform)]
    try:
        settings = load(project=project)
    except ConfigError as error:
        checks += _sandboxes(SandboxSettings(), platform)
        checks.append(_check("settings", "settings", Health.fail, str(error), error.remedy))
    else:
        checks += _sandboxes(settings.sandbox, platform)
        try:
            checks += _data(settings)
        except OSError as error:
            checks.append(_check("data", "folder", Health.fail, f"cannot be looked at: {error}", OTHER_HOME))
        checks += _models(settings, os.environ, online)
    return Examination(ok=all(one.health is not Health.fail for one in checks), checks=tuple(checks))


def _check(group: str, name: str, health: Health, detail: str, remedy: str = "") -> Check:
    return Check(group=group, name=name, health=health, detail=detail, remedy=remedy)


# -- the machine -------------------------------------------------------------------------------------------------------


def _machine(platform: str) -> Iterator[Check]:
    if platform == "darwin":
        # Of the whole machine; what stands in the way of a sandbox, its own line tells.
        remedy = "its own sandbox has not been tried yet; the one that Docker gives has: `--sandbox docker`"
        yield _check("machine", "system", Health.warn, UNTESTED_MACOS, remedy)
    yield check_python(sys.version_info[:3])
    yield _git()
    if shutil.which("rg"):
        yield _check("machine", "ripgrep", Health.ok, "found")
    else:
        remedy = "optional: install ripgrep to search large repos faster"
        yield _check("machine", "ripgrep", Health.ok, "not found; files are searched without it", remedy)


def check_python(version: tuple[int, ...]) -> Check:
    shown = ".".join(map(str, version))
    if version < OLDEST_PYTHON:
        return _check("machine", "python", Health.fail, f"{shown} is too old", "use Python 3.11 or newer")
    return _check("machine", "python", Health.ok, shown)


def _git() -> Check:
    remedy = f"install git {'.'.join(map(str, OLDEST_GIT))} or newer and put it on PATH"
    try:
        said = subprocess.run(
            ("git", "--version"), capture_output=True, text=True, check=True, timeout=PROGRAM_SECONDS
        ).stdout.strip()
    except FileNotFoundError:
        return _check("machine", "git", Health.fail, "not found", remedy)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
        return _check("machine", "git", Health.fail, f"does not work: {error}", remedy)
    version = tuple(int(number) for number in re.findall(r"\d+", said)[:2])
    if version < OLDEST_GIT:
        return _check("machine", "git", Health.fail, f"{said} is too old", remedy)
    return _check("machine", "git", Health.ok, said.removeprefix("git version "))


# -- sandboxes ---------------------------------------------------------------------------------------------------------


def _sandboxes(settings: SandboxSettings, platform: str) -> Iterator[Check]:
    """Each is tried, by a program that does its best to get out. What stands in the way, the sandbox itself tells."""
    held: list[str] = []
    first: SandboxUnavailable | None = None
    for name, make in _makers(settings, platform).items():
        try:
            with tempfile.TemporaryDirectory(prefix="redstart-doctor-") as scratch:
                proof = prove(make, Path(scratch))
        except (SandboxUnavailable, ConfigError) as error:
            leaks = isinstance(error, Leaks)
            first = first or (error if isinstance(error, SandboxUnavailable) else None)
            remedy = error.remedy if leaks else f"optional: {error.remedy}"
            yield _check("machine", name, Health.fail if leaks else Health.ok, f"none: {error}", remedy)
        else:
            held.append(proof.tier)
            told = f"holds, tried from within; starts in {proof.start * 1000:.0f} ms"
            yield _check("machine", name, Health.ok, told)
            for lack in lacks_of(proof.sandbox):
                yield _check("machine", "lacking", Health.warn, f"{name} lacks {lack.words}", lack.remedy)
    if held:
        yield _check("machine", "sandbox", Health.ok, f"{held[0]} is used, unless another is asked for")
    else:
        why, remedy = (str(first), first.remedy) if first else ("there is none for this system", ANYWAY)
        yield _check("machine", "sandbox", Health.fail, why, remedy or ANYWAY)


def _makers(settings: SandboxSettings, platform: str) -> dict[str, Make]:
    """Every backend of the system, the one that `auto` would take at the front; gVisor too, where the daemon has it."""
    asked = wanted(settings, os.environ)
    makers: dict[str, Make] = {}
    for name in order(platform, asked):
        if name != DOCKER:
            makers[name] = Bubblewrap if name == BWRAP else Seatbelt
            continue
        makers[name] = _docker(settings)
        if not settings.runtime and GVISOR in runtimes(os.environ):
            makers[f"{name}+{GVISOR}"] = _docker(settings.model_copy(update={"runtime": GVISOR}))
    return makers


def _docker(settings: SandboxSettings) -> Make:
    return lambda workspaces, scratch: Docker(workspaces, scratch, containers(settings, os.environ))


# -- what is kept ------------------------------------------------------------------------------------------------------


def _data(settings: Settings) -> Iterator[Check]:
    home = settings.home
    exists = home.is_dir()
    if home.exists() and not exists:
        yield _check("data", "folder", Health.fail, f"{home} is no folder", OTHER_HOME)
        return
    yield _check("data", "folder", Health.ok, str(home) if exists else f"{home}, made by the first run")
    yield _disk(home)
    if settings.store.url:
        yield _server(settings.store.url)
    if exists:
        if not settings.store.url:
            yield _database(home / "redstart.db")
        parts = {"blobs": "blobs", "snapshots": "snapshots", "database": "redstart.db*", "patches": "patches"}
        sizes = {name: sum(map(_size, home.glob(pattern))) for name, pattern in parts.items()}
        told = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
        yield _check("data", "size", Health.ok, told)


def _disk(home: Path) -> Check:
    there = next(place for place in (home, *home.absolute().parents) if place.is_dir())
    free = shutil.disk_usage(there).free
    detail = f"{free / 1e9:.1f} GB free"
    if not os.access(there, os.W_OK):
        return _check("data", "disk", Health.fail, f"{there} may not be written to", OTHER_HOME)
    if free < LITTLE_DISK:
        return _check("data", "disk", Health.warn, detail, "make room, or remove old runs: redstart runs prune")
    return _check("data", "disk", Health.ok, detail)


def _database(path: Path) -> Check:
    if not path.exists():
        return _check("data", "database", Health.ok, "none yet; made by the first run")
    try:
        revision = _revision(path)
    except (sqlite3.Error, OSError) as error:
        remedy = f"restore {path} from a copy, or move it away to begin anew"
        return _check("data", "database", Health.fail, f"cannot be read: {error}", remedy)
    return _judged(revision)


def _server(url: str) -> Check:
    try:
        return _judged(revision_at(url))
    except (StoreError, ConfigError) as error:
        return _check("data", "database", Health.fail, str(error), error.remedy or "look at store.url")


def _judged(revision: str | None) -> Check:
    if revision is None:
        return _check("data", "database", Health.ok, "empty; filled by the next run")
    if revision > HEAD:
        detail = f"revision {revision} is of a newer redstart than this one ({HEAD})"
        return _check(
            "data", "database", Health.fail, detail, "upgrade redstart, or set REDSTART_HOME to another folder"
        )
    older = "" if revision == HEAD else f", brought to {HEAD} by the next run"
    return _check("data", "database", Health.ok, f"revision {revision}{older}")


def _revision(path: Path) -> str | None:
    """Read past the adapter, which makes, locks and migrates what it opens.

    Any other way of opening leaves files beside a database in WAL mode. One that is in use is looked at as a copy.
    """
    with tempfile.TemporaryDirectory(prefix="redstart-doctor-") as folder:
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name(log.name))
            address = copy.as_uri()
        else:
            address = f"{path.absolute().as_uri()}?immutable=1"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                return None
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return None if row is None else str(row[0])


def _size(path: Path) -> int:
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(_size(one) for one in path.iterdir())
        return path.lstat().st_size
    except OSError:
        return 0


# -- models ------------------------------------------------------------------------------------------------------------


def _models(settings: Settings, environ: Mapping[str, str], online: bool) -> Iterator[Check]:
    keys = [endpoint.variable for endpoint in ENDPOINTS.values() if environ.get(endpoint.variable)]
    yield _check("models", "keys", Health.ok, ", ".join(keys) if keys else "none is set")
    try:
        require_model(settings)
    except ConfigError as error:
        yield _check("models", "models", Health.warn, f"{error}; redstart demo needs none", error.remedy)
        return
    for tier, name in _tiers(settings).items():
        yield _ping(settings, tier, name) if online else _reachable(settings, tier, name)
    if settings.memory.embedder:
        yield _embedder(settings, online=online)


def _embedder(settings: Settings, *, online: bool) -> Check:
    name = settings.memory.embedder
    try:
        embedding_address(settings)
        if not online:
            return _check("models", "embedder", Health.ok, f"{name} (not asked; --online asks)")
        embedder = embedder_of(settings)
        asyncio.run(embedder.embed(["KeyError: 'price'"]))
    except (ConfigError, ModelError) as error:
        # A run goes on without it, by the failures' names alone.
        return _check("models", "embedder", Health.warn, _safe(str(error), settings), error.remedy)
    return _check("models", "embedder", Health.ok, f"{name} answered, with {embedder.dimension} numbers a place")


def _tiers(settings: Settings) -> dict[Tier, str]:
    models = settings.models
    return {Tier.strong: models.strong} | ({Tier.fast: models.fast} if models.fast != models.strong else {})


def _alone(settings: Settings, name: str) -> Settings:
    """The same with this model only: what is wrong with the other one is told of that one."""
    alone: dict[str, object] = {"strong": name, "fast": name, "fallback": (), "steps": StepModels()}
    once: dict[str, object] = {"tries": 1, "deadline": PING_SECONDS, "patience": PING_SECONDS * 2}
    models = settings.models.model_copy(update={**alone, **once})
    return settings.model_copy(update={"models": models})


def _reachable(settings: Settings, tier: Tier, name: str) -> Check:
    try:
        connect(_alone(settings, name))
    except ConfigError as error:
        return _check("models", tier.value, Health.fail, _safe(str(error), settings), error.remedy)
    return _check("models", tier.value, Health.ok, f"{name} (not asked; --online asks)")


def _ping(settings: Settings, tier: Tier, name: str) -> Check:
    messages = (Message(role=Role.user, text="Reply with the word ok."),)
    ask = Ask(question="doctor", tier=tier, messages=messages, max_tokens=PING_TOKENS)
    began = time.monotonic()
    try:
        asyncio.run(connect(_alone(settings, name)).ask(ask))
    except (ConfigError, ModelError) as error:
        remedy = error.remedy or "check the model's name, its key and the network"
        return _check("models", tier.value, Health.fail, _safe(str(error), settings), remedy)
    return _check("models", tier.value, Health.ok, f"{name} answered in {time.monotonic() - began:.1f} s")


def _safe(said: str, settings: Settings) -> str:
    """An address may hold a password. Keys are taken out where the model is asked."""
    address = settings.models.base_url
    return said.replace(address, str(public_values(settings)["models.base_url"])) if address else said
