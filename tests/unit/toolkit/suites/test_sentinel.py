"""Traps in which tests pass or fail because of code that is not in the workspace."""

from __future__ import annotations

import asyncio
import os
import py_compile
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

from redstart.core.errors import SandboxUnavailable
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, Execution, ExitCause, SandboxLimits
from redstart.ports.sandbox.bwrap import Bubblewrap, probe
from redstart.testing.sandbox import FolderWorkspaces
from redstart.toolkit.languages.python.modules import list_own_packages
from redstart.toolkit.languages.python.sentinel import REPORT, Sentinel, read_sentinel
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.detection.environment import find_environment

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "shop"
version = "1"
[tool.hatch.build]
dev-mode-dirs = ["src"]
[tool.hatch.build.targets.wheel]
packages = ["src/shop"]
"""
FILES = {
    "pyproject.toml": PROJECT,
    "src/shop/__init__.py": "PRICE = 1\n",
    "tests/test_shop.py": "import shop\n\ndef test_price():\n    assert shop.PRICE == 2\n",
}
FIXED = {**FILES, "src/shop/__init__.py": "PRICE = 2\n"}
"""The workspace's files, with the right price: a passing test shows that the workspace was imported."""

UNITTEST = (
    "import unittest\nimport shop\n\nclass T(unittest.TestCase):\n    def test_p(self):\n"
    "        self.assertEqual(shop.PRICE, 2)\n"
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("uv"), reason="environments are made with uv")]


@pytest.fixture(scope="module", autouse=True)
def bubblewrap_works(tmp_path_factory: pytest.TempPathFactory) -> None:
    try:
        probe(tmp_path_factory.mktemp("probe"))
    except SandboxUnavailable as error:
        pytest.skip(f"{error} {error.remedy}")


def put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def run_uv(*arguments: str | Path) -> None:
    subprocess.run(("uv", "--offline", "--quiet", *arguments), check=True, env={**os.environ, "VIRTUAL_ENV": ""})


def make_environment(project: Path) -> Path:
    """Make a virtual environment in the project that uses the pytest and hatchling of these tests."""
    run_uv("venv", "--python", Path(sys.executable).resolve(), project / ".venv")
    (folder,) = (project / ".venv").glob("lib/python*/site-packages")
    (folder / "tools.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def install(project: Path, *packages: str | Path) -> None:
    python = project / ".venv" / "bin" / "python"
    run_uv("pip", "install", "--no-build-isolation", "--no-deps", "--no-cache", "--python", python, *packages)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = put(tmp_path / "project", FILES)
    make_environment(folder)
    return folder


class Run:
    """One run of the suite on a workspace with these files, in a real sandbox."""

    def __init__(
        self, project: Path, files: dict[str, str], suite: Suite | None = None, environment: Environment | None = None
    ) -> None:
        place = project.parent / "run"
        workspaces = FolderWorkspaces(place / "snapshots")
        snapshot = workspaces.create_snapshot("one", files)
        suite = suite or Suite(runner="pytest", environment="")
        environment = environment or find_environment(project, environ={"PATH": "/usr/bin:/bin"})
        request = runner.request(suite, environment, sentinel=list_own_packages(files))
        execution = Execution(
            argv=request.argv,
            snapshot=snapshot,
            environment=environment,
            limits=SandboxLimits(wall=60),
            variables={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **request.variables},
            files_in=request.files_in,
            collect=request.collect,
        )
        self.completed: Completed = asyncio.run(Bubblewrap(workspaces, place / "scratch").run(execution))
        self.cases = {case.id: case.outcome.value for case in runner.read(suite, self.completed).cases}
        self.sentinel = read_sentinel(self.completed, environment)


def test_editable_install_of_the_project_is_accepted(project: Path) -> None:
    install(project, "-e", project)
    run = Run(project, FIXED)
    assert run.cases == {"tests/test_shop.py::test_price": "passed"}, run.completed.output
    assert run.sentinel == Sentinel(inside=("shop",))
    assert run.sentinel.fault == run.sentinel.remedy == ""


def test_installed_copy_is_reported(project: Path) -> None:
    install(project, project)
    run = Run(project, FIXED)
    assert run.cases == {"tests/test_shop.py::test_price": "failed"}, run.completed.output
    assert run.sentinel is not None
    ((name, path),) = run.sentinel.outside_modules
    assert (name, Path(path).is_relative_to(project / ".venv"), "site-packages" in path) == ("shop", True, True)
    assert path in run.sentinel.fault
    assert "pip install -e ." in run.sentinel.remedy


def test_editable_install_of_another_checkout_is_reported(project: Path, tmp_path: Path) -> None:
    other_project = put(tmp_path / "other", FIXED)
    install(project, "-e", other_project)
    run = Run(project, FILES)
    assert run.cases == {"tests/test_shop.py::test_price": "passed"}, "the trap is not set: it must look green"
    assert run.sentinel == Sentinel(outside_modules=(("shop", str(other_project / "src/shop/__init__.py")),))
    assert "Another checkout" in run.sentinel.remedy


def test_editable_install_of_a_missing_checkout_is_reported(project: Path, tmp_path: Path) -> None:
    other_project = put(tmp_path / "other", FIXED)
    install(project, "-e", other_project)
    shutil.rmtree(other_project / "src")
    run = Run(project, FILES)
    assert run.sentinel == Sentinel(outside_modules=(("shop", str(other_project)),))


def test_pythonpath_of_the_user_has_no_effect(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other_project = put(tmp_path / "other", FILES)
    monkeypatch.setenv("PYTHONPATH", str(other_project / "src"))
    install(project, "-e", project)
    run = Run(project, FIXED)
    assert (run.cases, run.sentinel) == ({"tests/test_shop.py::test_price": "passed"}, Sentinel(inside=("shop",)))


def test_stale_bytecode_is_not_used(project: Path) -> None:
    install(project, "-e", project)
    source = project / "src/shop/__init__.py"
    unchecked_hash = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(source), doraise=True, invalidation_mode=unchecked_hash)
    py_compile.compile(str(source), str(project / "src/shop/gone.pyc"), doraise=True, invalidation_mode=unchecked_hash)
    put(project, {".gitignore": "*.pyc\n.venv\n"})
    subprocess.run(["git", "init", "-q", project], check=True)
    files = {**FIXED, "tests/test_gone.py": "import pytest\n\ndef test_gone():\n    pytest.importorskip('shop.gone')\n"}
    run = Run(project, files)
    assert run.cases == {"tests/test_shop.py::test_price": "passed", "tests/test_gone.py::test_gone": "skipped"}


def test_built_copy_in_the_project_is_reported(project: Path) -> None:
    put(project, {"build/lib/shop/__init__.py": "PRICE = 2\n", ".gitignore": "build/\n.venv/\n"})
    subprocess.run(["git", "init", "-q", project], check=True)
    run = Run(project, {**FILES, "pytest.ini": "[pytest]\npythonpath = build/lib\n"})
    assert run.cases == {"tests/test_shop.py::test_price": "passed"}, "the trap is not set: it must look green"
    assert run.sentinel == Sentinel(outside_modules=(("shop", str(project / "build/lib/shop/__init__.py")),))
    assert "built copy" in run.sentinel.remedy


@pytest.mark.parametrize("editable", [True, False])
def test_installed_copy_is_detected_with_unittest(project: Path, editable: bool) -> None:
    install(project, *(("-e",) if editable else ()), project)
    files = {**FIXED, "tests/test_shop.py": UNITTEST}
    run = Run(project, files, Suite(runner="unittest", environment=""))
    assert list(run.cases.values()) == ["passed" if editable else "failed"], run.completed.output
    assert run.sentinel is not None
    assert (run.sentinel.inside, bool(run.sentinel.fault)) == (("shop",) if editable else (), not editable)


def test_installed_copy_is_detected_with_several_processes(project: Path) -> None:
    install(project, project)
    suite = Suite(runner="pytest", command=("python", "-m", "pytest", "-p", "xdist", "-n", "2"), environment="")
    run = Run(project, FIXED, suite)
    assert run.cases == {"tests/test_shop.py::test_price": "failed"}, run.completed.output
    assert run.sentinel is not None
    assert [name for name, _ in run.sentinel.outside_modules] == ["shop"]


def test_sentinel_is_invisible_to_the_tests(project: Path) -> None:
    install(project, "-e", project)
    text = (
        "import os, subprocess, sys\n\ndef test_it():\n    assert 'PYTHONPATH' not in os.environ\n"
        "    assert 'REDSTART_SENTINEL' not in os.environ\n    assert not any('redstart' in one for one in sys.path)\n"
    )
    run = Run(project, {**FIXED, "tests/test_it.py": text})
    assert set(run.cases.values()) == {"passed"}, run.completed.output


def test_package_that_is_not_found_is_harmless(project: Path) -> None:
    run = Run(project, {**FILES, "tests/test_shop.py": "def test_nothing():\n    pass\n"})
    assert run.sentinel == Sentinel(missing_modules=("shop",))
    assert run.sentinel.fault == ""


def test_module_shadowed_by_an_installed_namesake_is_harmless(project: Path) -> None:
    files = {"hatchling.py": "", "src/colorsys/__init__.py": "", "tests/test_a.py": "def test_a(): pass\n"}
    suite = Suite(runner="pytest", command=("python", "-P", "-m", "pytest"), environment="")
    run = Run(project, files, suite)
    assert run.sentinel == Sentinel(missing_modules=("colorsys", "hatchling"))


@pytest.mark.parametrize("command", [("python", "-I", "-m", "pytest"), ("python", "-sE", "-m", "pytest")])
def test_command_that_cannot_load_our_plugin_runs_without_it(command: Sequence[str], environment: Environment) -> None:
    suite = Suite(runner="pytest", command=tuple(command), environment="")
    assert runner.request(suite, environment, sentinel=("shop",)) == runner.request(suite, environment)


@pytest.mark.parametrize("left", [{}, {REPORT: "no json"}, {REPORT: '{"root": 1}'}])
def test_run_without_a_sentinel_report_yields_none(left: dict[str, str], environment: Environment) -> None:
    completed = Completed(exit_code=2, cause=ExitCause.failed, output="", files=left)
    assert read_sentinel(completed, environment) is None


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["src/a/__init__.py", "src/a/b/__init__.py", "src/a/c.py", "src/d.py"], ["a", "d"]),
        (["src/acme/tool/__init__.py", "src/acme/tool/x.py"], ["acme.tool"]),
        (["src/acme/x.py", "src/acme/deep/y.py"], ["acme"]),
        (["src/__init__.py", "src/a.py", "src/b/__init__.py"], ["src"]),
        (["a/__init__.py", "a/b/__init__.py", "plain/c.py", "d.py"], ["a", "d"]),
        (["tests/__init__.py", "docs/conf.py", "setup.py", "conftest.py", "test_a.py", "noxfile.py"], []),
        (["not-a-name/__init__.py", "x.txt", "src/x.txt"], []),
    ],
)
def test_project_packages_are_found(paths: list[str], names: list[str]) -> None:
    assert list(list_own_packages(paths)) == names
