"""Install a fake case: with care, as redstart does when a person approves everything, or without."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from fake_cases import Case
from fake_index import FakeIndex

from redstart.app.installs import IndexInstaller
from redstart.ports.install.port import InstallResult, PackageRefusal
from redstart.toolkit.installs.approval import judge
from redstart.toolkit.installs.environment import build_install_requests
from redstart.toolkit.languages.python.pip import find_pip

PROMPT = ("npm postinstall",)
"""Cases that every test run checks; the others take minutes."""
ASKED_FOR = {"acme-pulls-plugin": "acme-plugin", "acme-pulls-source": "acme-setup", "acme-wraps": "reqeusts"}
MARKS = {
    "acme-yanked==1.0": "acme-yanked",
    "@type/node": "@type-node",
    "lodash": "acme-postinstall",
    "acme-borrows": "acme-postinstall",
    "acme-pulls-remote": "acme-postinstall",
    "acme-pulls-bundle": "acme-hidden",
}


def mark_of(case: Case) -> str:
    """Return the mark that the payload of a case leaves."""
    if case.language == "node":
        package = case.asks.replace("acme-pulls-", "acme-")
        return "expresss" if case.asks == "acme-wraps" else MARKS.get(case.asks, package)
    name = case.asks.splitlines()[-1].partition(" @ ")[0]
    return ASKED_FOR.get(name, MARKS.get(name, name))


def bare(case: Case, index: FakeIndex, folder: Path, fetching: dict[str, str]) -> str:
    """Install like a careless person, run a test of the project and return the output."""
    for path, data in case.build_files(index).items():
        (folder / path).write_bytes(data)
    (folder / "test_project.py").write_text("import os\n\ndef test_it():\n    os.system('git --version')\n")
    variables = {**fetching, "HOME": str(folder), "TMPDIR": str(folder), "NPM_CONFIG_IGNORE_SCRIPTS": "false"}
    python = folder / "venv" / "bin" / "python"
    variables["PATH"] = f"{python.parent}:{fetching['PATH']}"
    if case.second_index:
        variables["PIP_EXTRA_INDEX_URL"] = index.build_url("second/simple/")
    pip = (*find_pip(python, os.environ), "install", "-q")
    commands = {
        "python": [
            (sys.executable, "-I", "-m", "venv", "--without-pip", str(folder / "venv")),
            (*pip, "pytest"),
            (*pip, "-r", "requirements.txt"),
            (str(python), "-m", "pytest", "-q"),
        ],
        "node": [("npm", "install", "--no-audit", "--no-fund", "--dangerously-allow-all-scripts")],
    }[case.language]
    boundary = (
        *("bwrap", "--die-with-parent", "--unshare-pid", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--bind", str(folder), str(folder), "--bind", str(index.canaries), str(index.canaries)),
    )
    output = ""
    for command in commands:
        completed = subprocess.run(
            (*boundary, *command), cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300
        )
        output += completed.stdout + completed.stderr
    return output


def variables_of(index: FakeIndex, home: Path) -> dict[str, str]:
    """Return the variables of a user whose pip and npm use only the fake index."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.build_url("main/simple/"),
        "NPM_CONFIG_REGISTRY": index.build_url("npm/"),
        "NPM_CONFIG_USERCONFIG": os.devnull,
    }


def approved_install(
    case: Case, index: FakeIndex, home: Path, fetching: dict[str, str]
) -> tuple[list[PackageRefusal], InstallResult]:
    """Install the packages of a project after a person approves everything. Return the refusals and the result."""
    files = case.build_files(index)
    first_judgment = judge(files, {}, {})
    approvals = {case.language: [item.requirement.name for item in first_judgment.to_approve]}
    judgment = judge(files, {}, approvals)
    if judgment.refused:
        return list(judgment.refused), InstallResult()
    extra = {"PIP_EXTRA_INDEX_URL": index.build_url("second/simple/")} if case.second_index else {}
    (request,) = build_install_requests(judgment)
    install_result = IndexInstaller(home, {**fetching, **extra}).prepare(request)
    return list(install_result.refused), install_result
