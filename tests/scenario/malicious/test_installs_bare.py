"""The same packages, installed without care in a throwaway sandbox: their payloads run, so the other tests notice them.

Also the opposite: tests of a project use packages that were installed with care.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_cases import CASES, Case
from installing import PROMPT, bare, mark_of

from redstart.app.installs import IndexInstaller
from redstart.core.shell import Completed, Environment, Execution
from redstart.ports.install.port import InstallResult
from redstart.ports.sandbox.bwrap import Bubblewrap
from redstart.testing.sandbox import FolderWorkspaces
from redstart.toolkit.installs.environment import requests_of
from redstart.toolkit.installs.judge import judge
from redstart.toolkit.installs.manager import manager_of
from redstart.toolkit.suites.detection.environment import find_environment


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in PROMPT else pytest.mark.soak)
        for case in CASES
        if case.bare
    ],
)
def test_installed_without_care_it_runs(case: Case, fake_index: Any, fetching: dict[str, str], tmp_path: Path) -> None:
    mark = mark_of(case)
    (fake_index.canaries / mark).unlink(missing_ok=True)
    fake_index.called.clear()
    said = bare(case, fake_index, tmp_path, fetching)
    assert mark in fake_index.seen(), said[-2000:]
    (fake_index.canaries / mark).unlink(missing_ok=True)
    fake_index.called.clear()


def prepared_for(name: str, language: str, index: Any, home: Path, fetching: dict[str, str]) -> InstallResult:
    files = Case("", language, name, "").files(index)
    (request,) = requests_of(judge(files, {language: [name]}, {}))
    return IndexInstaller(home, fetching).prepare(request)


def in_sandbox(tmp_path: Path, prepared: InstallResult, files: dict[str, str], *argv: str) -> Completed:
    """Run a command in a project of these files, with the installed packages."""
    for folder in ("project", "scratch", "trees"):
        (tmp_path / folder).mkdir()
    workspaces = FolderWorkspaces(tmp_path / "trees")
    plain = find_environment(tmp_path / "project", python=sys.executable, environ=os.environ)
    environment: Environment = manager_of("python" if prepared.python else "node").with_packages(plain, prepared)
    command = tuple(environment.python if word == "python" else word for word in argv)
    asked = Execution(argv=command, snapshot=workspaces.snapshot("t", files), environment=environment)
    return asyncio.run(Bubblewrap(workspaces, tmp_path / "scratch").run(asked))


@pytest.mark.soak
def test_the_tests_use_what_was_installed_and_cannot_change_it(
    fake_index: Any, fetching: dict[str, str], tmp_path: Path
) -> None:
    prepared = prepared_for("acme-good", "python", fake_index, tmp_path / "home", fetching)
    test = (
        "import pathlib, acme_good, pytest\n\n"
        "def test_it():\n"
        "    assert acme_good.answer() == 42\n"
        "    with pytest.raises(OSError):\n"
        "        pathlib.Path(acme_good.__file__).write_text('')\n"
        f"    assert not pathlib.Path({str(fake_index.canaries)!r}).exists()\n"
    )
    done = in_sandbox(tmp_path, prepared, {"test_it.py": test}, "python", "-m", "pytest", "-q", "test_it.py")
    assert done.exit_code == 0, done.output
    again = prepared_for("acme-good", "python", fake_index, tmp_path / "home", fetching)
    assert again == prepared


def test_a_script_of_an_approved_package_is_not_run_in_the_sandbox_either(
    fake_index: Any, fetching: dict[str, str], tmp_path: Path
) -> None:
    prepared = prepared_for("acme-postinstall", "node", fake_index, tmp_path / "home", fetching)
    test = (
        "import acme from 'acme-postinstall'\nimport fs from 'fs'\nimport test from 'node:test'\n"
        "import assert from 'node:assert'\n\ntest('it', () => {\n"
        f"  assert.ok(!fs.existsSync({str(fake_index.canaries)!r}))\n"
        "  assert.throws(() => fs.writeFileSync('node_modules/acme-postinstall/index.js', ''))\n})\n"
    )
    done = in_sandbox(tmp_path, prepared, {"it.test.mjs": test}, "node", "--test", "it.test.mjs")
    assert done.exit_code == 0, done.output
    assert fake_index.seen() == set()
