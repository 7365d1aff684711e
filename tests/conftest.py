"""Defaults for every test: no API key and no run store of the user; slow or costly tests run only on request."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redstart.app.servers.postgres import Postgres

pytest.register_assert_rewrite("redstart.testing", "support")

SWITCHES = {"live": "asks a real model, which may cost money", "soak": "takes minutes"}
KEPT = {"REDSTART_DATA"}

SLOW_MARKS = {"slow", *SWITCHES}
"""Marks of the tests that `--quick` leaves out."""
SLOW_FIXTURES = {"postgres", "new_postgres", "project", "new_environment"}
"""Fixtures that start a server or install packages. A test that uses one needs no mark."""
STARTS_A_PROCESS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec"}
"""What Python calls these events when it audits them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="run only tests that start no process and do not wait")
    for name, reason in SWITCHES.items():
        parser.addoption(f"--{name}", action="store_true", help=f"also run each test that {reason}")


def is_quick(item: pytest.Item) -> bool:
    """Whether a test has no slow mark or fixture and is not the form of a test for PostgreSQL."""
    fixtures: list[str] = getattr(item, "fixturenames", [])
    is_marked = any(item.get_closest_marker(name) for name in SLOW_MARKS)
    return not is_marked and SLOW_FIXTURES.isdisjoint(fixtures) and "postgres" not in item.name.partition("[")[2]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--quick"):
        slower = [item for item in items if not is_quick(item)]
        items[:] = [item for item in items if is_quick(item)]
        config.hook.pytest_deselected(items=slower)
    for name, reason in SWITCHES.items():
        if not config.getoption(f"--{name}"):
            skip = pytest.mark.skip(reason=f"{reason}; run with --{name}")
            for item in items:
                if item.get_closest_marker(name):
                    item.add_marker(skip)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        config.pluginmanager.register(NoProcesses(), "no-processes")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(NamesFailuresAtOnce(config), "names-failures-at-once")


class NoProcesses:
    """With `--quick`, a test that starts a process fails, so that the quick tests stay quick."""

    def __init__(self) -> None:
        self._started = ""
        sys.addaudithook(self._note)

    def _note(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in STARTS_A_PROCESS:
            self._started = f"{event}: {arguments[0] if arguments else ''}"

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        self._started = ""
        yield
        if self._started:
            pytest.fail(f"a quick test starts a process ({self._started}): mark it with pytest.mark.slow")


class NamesFailuresAtOnce:
    """Prints each failure at once, so that an interrupted test session still shows them."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        printer = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and printer is not None:
            printer.write_line(f"\n{report.when} of {report.nodeid} failed after {report.duration:.0f} s")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run asynchronous tests on asyncio, as Redstart runs."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def quiet_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give the session its own run store; without --live, also hide the API keys and settings of the user."""
    with pytest.MonkeyPatch.context() as patch:
        if not request.config.getoption("--live"):
            for name in list(os.environ):
                if name.endswith("_API_KEY") or (name.startswith("REDSTART_") and name not in KEPT):
                    patch.delenv(name)
        patch.setenv("REDSTART_HOME", str(tmp_path_factory.mktemp("redstart-home")))
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config-home")))
        yield


@pytest.fixture(scope="session")
def new_environment(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that makes a virtual environment with only these packages, by default for this interpreter."""

    def make(*packages: str, python: str = sys.executable) -> Path:
        folder = tmp_path_factory.mktemp("environment") / "venv"
        uv = shutil.which("uv")
        assert uv, "uv is needed to make the projects' environment"
        subprocess.run([uv, "venv", "-q", "--python", python, str(folder)], check=True)
        options = ("-q", "--compile-bytecode", "--python", str(folder / "bin" / "python"))
        subprocess.run([uv, "pip", "install", *options, *packages], check=True)
        return folder

    return make


@pytest.fixture(scope="session")
def project(new_environment: Callable[..., Path]) -> Path:
    """Return the virtual environment of the sample repos. It holds only pytest, so it starts fast."""
    return new_environment(f"pytest=={version('pytest')}")


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """Start a Postgres server for the session."""
    from redstart.app.servers.postgres import serve_postgres

    folder = tmp_path_factory.mktemp("postgres")
    with serve_postgres(folder) as server:
        yield server
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def spare_databases() -> list[str]:
    """Return databases that earlier tests used and emptied: emptying one is faster than making one."""
    return []


@pytest.fixture
def new_postgres(postgres: Postgres, spare_databases: list[str]) -> Iterator[Callable[[], str]]:
    """Return a function that gives the address of another empty, migrated database on each call."""
    from redstart.ports.sql.engine import Database

    used: list[str] = []

    def make() -> str:
        if spare_databases:
            used.append(spare_databases.pop())
        else:
            used.append(postgres.make_database())
            Database.open(used[-1]).close()
        return used[-1]

    yield make
    for url in used:
        _truncate_tables(url)
    spare_databases += used


def _truncate_tables(url: str) -> None:
    import psycopg

    from redstart.ports.sql.schema import metadata

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"TRUNCATE {', '.join(metadata.tables)}".encode())
