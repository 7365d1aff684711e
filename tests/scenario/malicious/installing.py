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
from redstart.toolkit.installs.environment import requests_of
from redstart.toolkit.installs.judge import judge
from redstart.toolkit.languages.python.pip import pip_for

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
        plain = case.asks.replace("acme-pulls-", "acme-")
        return "expresss" if case.asks == "acme-wraps" else MARKS.get(case.asks, plain)
    name = case.asks.splitlines()[-1].partition(" @ ")[0]
    return ASKED_FOR.get(name, MARKS.get(name, name))


def bare(case: Case, index: FakeIndex, folder: Path, fetching: dict[str, str]) -> str:
    """Install like a careless person, run a test of the project and return the output."""
    for path, data in case.files(index).items():
        (folder / path).write_bytes(data)
    (folder / "test_project.py").write_text("import os\n\ndef test_it():\n    os.system('git --version')\n")
    variables = {**fetching, "HOME": str(folder), "TMPDIR": str(folder), "NPM_CONFIG_IGNORE_SCRIPTS": "false"}
    python = folder / "venv" / "bin" / "python"
    variables["PATH"] = f"{python.parent}:{fetching['PATH']}"
    if case.second_index:
        variables["PIP_EXTRA_INDEX_URL"] = index.address("second/simple/")
    pip = (*pip_for(python, os.environ), "install", "-q")
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
    said = ""
    for command in commands:
        done = subprocess.run(
            (*boundary, *command), cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300
        )
        said += done.stdout + done.stderr
    return said


def variables_of(index: FakeIndex, home: Path) -> dict[str, str]:
    """Return the variables of a user whose pip and npm use only the fake index."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": index.address("main/simple/"),
        "NPM_CONFIG_REGISTRY": index.address("npm/"),
        "NPM_CONFIG_USERCONFIG": os.devnull,
    }


def approved_install(
    case: Case, index: FakeIndex, home: Path, fetching: dict[str, str]
) -> tuple[list[PackageRefusal], InstallResult]:
    """Install the packages of a project after a person approves everything. Return the refusals and the result."""
    files = case.files(index)
    first = judge(files, {}, {})
    yes = {case.language: [item.requirement.name for item in first.to_approve]}
    said = judge(files, {}, yes)
    if said.refused:
        return list(said.refused), InstallResult()
    extra = {"PIP_EXTRA_INDEX_URL": index.address("second/simple/")} if case.second_index else {}
    (request,) = requests_of(said)
    prepared = IndexInstaller(home, {**fetching, **extra}).prepare(request)
    return list(prepared.refused), prepared
