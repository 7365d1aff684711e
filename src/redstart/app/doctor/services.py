"""Checks of the data directory and of the servers that the settings name."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from redstart.app.doctor.results import DoctorCheck, Health
from redstart.app.settings import Settings
from redstart.app.wire import reach_graph
from redstart.core.errors import ConfigError, PortError, StoreError
from redstart.ports.model.endpoints import get_host, without_credentials
from redstart.ports.sql.postgres import read_revision_at
from redstart.ports.sql.schema import HEAD

LITTLE_DISK = 10**9
SERVER_SECONDS = 5
"""The timeout for one server."""
OTHER_HOME = "check who owns it, or set REDSTART_HOME to another directory"


def check_data(settings: Settings) -> Iterator[DoctorCheck]:
    """Check the data directory, its disk and its database. Create and migrate nothing."""
    try:
        yield from _check_data_directory(settings)
    except OSError as error:
        yield _check("data", "folder", Health.fail, f"cannot be read: {error}", OTHER_HOME)


def check_servers(settings: Settings, environ: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Connect once to each configured server: Temporal by `fleet.address`, Neo4j by `NEO4J_URI`."""
    if settings.fleet.address:
        yield _check_temporal(settings.fleet.address, settings.fleet.namespace)
    if url := environ.get("NEO4J_URI", ""):
        yield _check_neo4j(url, environ)


def _check(group: str, name: str, health: Health, detail: str, remedy: str = "") -> DoctorCheck:
    return DoctorCheck(group=group, name=name, health=health, detail=detail, remedy=remedy)


def _check_temporal(address: str, namespace: str) -> DoctorCheck:
    async def reach() -> None:
        from redstart.engines.temporal.client import connect  # noqa: PLC0415  (slow to load)

        async with asyncio.timeout(SERVER_SECONDS):
            await connect(address, namespace)

    remedy = "start the server, or change fleet.address: redstart config edit"
    try:
        asyncio.run(reach())
    except ModuleNotFoundError:
        return _check("servers", "temporal", Health.fail, "not installed", "pip install 'redstart[fleet]'")
    except (PortError, TimeoutError):
        return _check("servers", "temporal", Health.fail, f"does not answer at {address}", remedy)
    return _check("servers", "temporal", Health.ok, f"{address} answers, namespace {namespace}")


def _check_neo4j(url: str, environ: Mapping[str, str]) -> DoctorCheck:
    try:
        reach_graph(url, environ, SERVER_SECONDS)
    except (ConfigError, PortError) as error:
        # Only `memory mirror` needs it.
        remedy = error.remedy or "start the server, or unset NEO4J_URI"
        return _check("servers", "neo4j", Health.warn, f"at {without_credentials(url)}: {error}", remedy)
    return _check("servers", "neo4j", Health.ok, f"{get_host(url)} answers")


def _check_data_directory(settings: Settings) -> Iterator[DoctorCheck]:
    home = settings.home
    exists = home.is_dir()
    if home.exists() and not exists:
        yield _check("data", "folder", Health.fail, f"{home} is not a directory", OTHER_HOME)
        return
    yield _check("data", "folder", Health.ok, str(home) if exists else f"{home}, created by the first run")
    yield _check_disk(home)
    if settings.store.url:
        yield _check_database_server(settings.store.url)
    if exists:
        if not settings.store.url:
            yield _check_database(home / "redstart.db")
        parts = {"blobs": "blobs", "snapshots": "snapshots", "database": "redstart.db*", "patches": "patches"}
        sizes = {name: sum(map(_measure_size, home.glob(pattern))) for name, pattern in parts.items()}
        sizes_in_words = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in sizes.items())
        yield _check("data", "size", Health.ok, sizes_in_words)


def _check_disk(home: Path) -> DoctorCheck:
    nearest_directory = next(place for place in (home, *home.absolute().parents) if place.is_dir())
    free = shutil.disk_usage(nearest_directory).free
    detail = f"{free / 1e9:.1f} GB free"
    if not os.access(nearest_directory, os.W_OK):
        return _check("data", "disk", Health.fail, f"{nearest_directory} is not writable", OTHER_HOME)
    if free < LITTLE_DISK:
        return _check("data", "disk", Health.warn, detail, "free some space, or remove old runs: redstart runs prune")
    return _check("data", "disk", Health.ok, detail)


def _check_database(path: Path) -> DoctorCheck:
    if not path.exists():
        return _check("data", "database", Health.ok, "none yet; the first run creates it")
    try:
        revision = _read_revision(path)
    except (sqlite3.Error, OSError) as error:
        remedy = f"restore {path} from a backup, or move it away to start with an empty one"
        return _check("data", "database", Health.fail, f"cannot be read: {error}", remedy)
    return _check_revision(revision)


def _check_database_server(url: str) -> DoctorCheck:
    try:
        check = _check_revision(read_revision_at(url, SERVER_SECONDS))
    except (StoreError, ConfigError) as error:
        detail = f"Postgres at {get_host(url)}: {error}"
        return _check("data", "database", Health.fail, detail, error.remedy or "start the server, or change store.url")
    return check.model_copy(update={"detail": f"Postgres at {get_host(url)}, {check.detail}"})


def _check_revision(revision: str | None) -> DoctorCheck:
    if revision is None:
        return _check("data", "database", Health.ok, "empty until the next run")
    if revision > HEAD:
        detail = f"revision {revision} was written by a newer Redstart than this one ({HEAD})"
        return _check(
            "data", "database", Health.fail, detail, "upgrade Redstart, or set REDSTART_HOME to another directory"
        )
    older = "" if revision == HEAD else f"; the next run upgrades it to {HEAD}"
    return _check("data", "database", Health.ok, f"revision {revision}{older}")


def _read_revision(path: Path) -> str | None:
    """Read the revision without the adapter, which creates, locks and migrates the database that it opens.

    Any other way of opening a database in WAL mode leaves files beside it. A database in use is read from a copy.
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


def _measure_size(path: Path) -> int:
    try:
        if path.is_dir() and not path.is_symlink():
            return sum(_measure_size(item) for item in path.iterdir())
        return path.lstat().st_size
    except OSError:
        return 0
