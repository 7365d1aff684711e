from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from redstart.core.run import Mode, RunSpec, Suite
from redstart.core.shell import IN, OUT, Completed, Environment, ExitCause
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.ports.store.blobs import DirectoryBlobs
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.repo.trees import GitTrees
from redstart.toolkit.suites.detection.environment import find_environment
from redstart.toolkit.suites.execute import SuiteRun, run_suite
from redstart.toolkit.suites.request import SuiteRequest

Execute = Callable[[Path, SuiteRequest], Completed]
InSandbox = Callable[..., SuiteRun]


class Prepared(NamedTuple):
    sandbox: Bubblewrap
    blobs: DirectoryBlobs
    spec: RunSpec


@pytest.fixture(scope="session")
def environment() -> Environment:
    """The interpreter that runs these tests. Set `SUITES_PYTHON` to try another Python or pytest."""
    return Environment(mount="/nowhere", python=os.environ.get("SUITES_PYTHON", sys.executable))


@pytest.fixture(scope="session")
def execute(tmp_path_factory: pytest.TempPathFactory, environment: Environment) -> Execute:
    """Run a request like a sandbox, but without isolation."""

    def run(root: Path, request: SuiteRequest) -> Completed:
        inside, outside = tmp_path_factory.mktemp("in"), tmp_path_factory.mktemp("out")
        for name, text in request.files_in.items():
            (inside / name).write_text(text, encoding="utf-8")

        def expand_paths(text: str) -> str:
            return text.replace(IN, str(inside)).replace(OUT, str(outside))

        variables = {"PATH": f"{Path(environment.python).parent}:/usr/bin:/bin", "HOME": str(inside)}
        variables["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # no other plugins: they interfere, and loading them is slow
        variables |= {name: expand_paths(value) for name, value in request.variables.items()}
        completed = subprocess.run(
            [expand_paths(argument) for argument in request.argv],
            cwd=root,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        files = {name: (outside / name).read_text("utf-8") for name in request.collect if (outside / name).exists()}
        cause = ExitCause.ok if completed.returncode == 0 else ExitCause.failed
        return Completed(exit_code=completed.returncode, cause=cause, output=completed.stdout, files=files)

    return run


@pytest.fixture(scope="session")
def write() -> Callable[[Path, Mapping[str, str]], Path]:
    """Write a repo from a mapping of paths to texts."""

    def write_files(root: Path, files: Mapping[str, str]) -> Path:
        for path, text in files.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return root

    return write_files


@pytest.fixture(scope="session")
def tools(new_environment: Callable[..., Path]) -> str:
    """The interpreter of an environment with pytest, some of its plugins, nox and tox."""
    plugins = ("pytest-cov", "pytest-random-order", "pytest-randomly", "pytest-xdist")
    return str(new_environment(f"pytest=={version('pytest')}", *plugins, "nox", "tox") / "bin" / "python")


@pytest.fixture
def prepared(tmp_path: Path, tools: str) -> Callable[[Path, Suite], Prepared]:
    """Prepare what a step needs to run a folder's suite: the real sandbox, the blobs and the run's spec."""

    def prepare(root: Path, suite: Suite) -> Prepared:
        blobs = DirectoryBlobs(tmp_path / "blobs")
        trees = GitTrees(tmp_path / "trees", blobs)
        environment = find_environment(root, python=tools, environ={"PATH": "/usr/bin:/bin"})
        stored_suite = suite.model_copy(update={"environment": blobs.put(environment.model_dump_json().encode())})
        spec = RunSpec(mode=Mode.fix, base=trees.take(root), suite=stored_suite)
        return Prepared(Bubblewrap(trees, tmp_path / "scratch"), blobs, spec)

    return prepare


@pytest.fixture
def in_sandbox(prepared: Callable[[Path, Suite], Prepared]) -> InSandbox:
    """Run a folder's suite in the real sandbox, as a step does."""

    def run(root: Path, suite: Suite, **options: Any) -> SuiteRun:
        sandbox, blobs, spec = prepared(root, suite)
        return asyncio.run(
            run_suite(sandbox, blobs, spec, spec.base, sign=partial(sign, is_source=lambda path: True), **options)
        )

    return run
