"""The same packages, installed without care in a throwaway sandbox: their payloads run, so the other tests notice them.

Also the opposite: tests of a project use packages that were installed with care.
"""

from __future__ import annotations

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
from redstart.toolkit.installs.approval import judge
from redstart.toolkit.installs.environment import build_install_requests
from redstart.toolkit.installs.manager import get_manager
from redstart.toolkit.suites.detection.environment import find_environment


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=() if case.name in PROMPT else pytest.mark.soak)
        for case in CASES
        if case.bare
    ],
)
def test_careless_install_runs_the_payload(
    case: Case, fake_index: Any, fetching: dict[str, str], tmp_path: Path
) -> None:
    mark = mark_of(case)
    (fake_index.canaries / mark).unlink(missing_ok=True)
    fake_index.called.clear()
    output = bare(case, fake_index, tmp_path, fetching)
    assert mark in fake_index.seen(), output[-2000:]
    (fake_index.canaries / mark).unlink(missing_ok=True)
    fake_index.called.clear()


def prepare_package(name: str, language: str, index: Any, home: Path, fetching: dict[str, str]) -> InstallResult:
    files = Case("", language, name, "").build_files(index)
    (request,) = build_install_requests(judge(files, {language: [name]}, {}))
    return IndexInstaller(home, fetching).prepare(request)


async def in_sandbox(tmp_path: Path, prepared: InstallResult, files: dict[str, str], *argv: str) -> Completed:
    """Run a command in a project of these files, with the installed packages."""
    for folder in ("project", "scratch", "trees"):
        (tmp_path / folder).mkdir()
    workspaces = FolderWorkspaces(tmp_path / "trees")
    base_environment = find_environment(tmp_path / "project", python=sys.executable, environ=os.environ)
    environment: Environment = get_manager("python" if prepared.python else "node").with_packages(
        base_environment, prepared
    )
    command = tuple(environment.python if part == "python" else part for part in argv)
    execution = Execution(argv=command, snapshot=workspaces.create_snapshot("t", files), environment=environment)
    return await Bubblewrap(workspaces, tmp_path / "scratch").run(execution)


@pytest.mark.soak
async def test_tests_can_use_but_not_change_installed_packages(
    fake_index: Any, fetching: dict[str, str], tmp_path: Path
) -> None:
    install_result = prepare_package("acme-good", "python", fake_index, tmp_path / "home", fetching)
    test = (
        "import pathlib, acme_good, pytest\n\n"
        "def test_it():\n"
        "    assert acme_good.answer() == 42\n"
        "    with pytest.raises(OSError):\n"
        "        pathlib.Path(acme_good.__file__).write_text('')\n"
        f"    assert not pathlib.Path({str(fake_index.canaries)!r}).exists()\n"
    )
    completed = await in_sandbox(
        tmp_path, install_result, {"test_it.py": test}, "python", "-m", "pytest", "-q", "test_it.py"
    )
    assert completed.exit_code == 0, completed.output
    second_install = prepare_package("acme-good", "python", fake_index, tmp_path / "home", fetching)
    assert second_install == install_result


async def test_install_script_of_an_approved_package_does_not_run_in_the_sandbox(
    fake_index: Any, fetching: dict[str, str], tmp_path: Path
) -> None:
    install_result = prepare_package("acme-postinstall", "node", fake_index, tmp_path / "home", fetching)
    test = (
        "import acme from 'acme-postinstall'\nimport fs from 'fs'\nimport test from 'node:test'\n"
        "import assert from 'node:assert'\n\ntest('it', () => {\n"
        f"  assert.ok(!fs.existsSync({str(fake_index.canaries)!r}))\n"
        "  assert.throws(() => fs.writeFileSync('node_modules/acme-postinstall/index.js', ''))\n})\n"
    )
    completed = await in_sandbox(tmp_path, install_result, {"it.test.mjs": test}, "node", "--test", "it.test.mjs")
    assert completed.exit_code == 0, completed.output
    assert fake_index.seen() == set()
