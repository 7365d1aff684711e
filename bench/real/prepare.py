"""A real project as on a developer's disk: unpacked, committed, and installed by its package manager."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

from _environments import PYTEST, BenchError, install_tool, make_environment, run_checked, run_pip
from redstart.core.frozen import FrozenValue

MANIFEST = Path(__file__).parents[1] / "projects.json"
IGNORED = (
    *("__pycache__/", "*.egg-info/", ".pytest_cache/", ".venv/", "venv/", ".tox/", ".nox/", "build/", "*.so"),
    *(".coverage", "coverage.xml", ".pdm-python", ".hypothesis/"),
)
"""Patterns for a project's .gitignore."""
FIXED: dict[str, str] = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2024-01-01T00:00:00+00:00")


class Mutation(FrozenValue):
    """One change of one file: `old` occurs in it once, and `new` once after the change."""

    file: str
    old: str
    new: str


class Sdist(FrozenValue):
    """A release from the package index, and where to put it."""

    name: str
    version: str
    sha256: str
    folder: str = ""
    """The project's folder in the git repo, if the repo holds several projects."""
    files: dict[str, str] = {}
    """Files that its developers have but its sdist omits."""


class Project(Sdist):
    shape: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """Packages that its tests need besides the project and pytest."""
    command: str = ""
    """The command that runs its tests; empty for the one that Redstart detects."""
    unittest: bool = False
    """Whether unittest runs its tests outside."""
    manager: str = ""
    """The tool that makes its environment and must then report it: poetry, pdm, hatch or uv. Empty if the environment
    is found without a tool."""
    venv: str = ""
    """The folder of its environment in the project; empty for a folder elsewhere, which is then active."""
    known_red: tuple[str, ...] = ()
    """IDs of tests that fail without the mutation."""
    quick: bool = False
    mutation: Mutation


class Ready(NamedTuple):
    """A project ready to be tested."""

    repo: Path
    root: Path
    """The project's folder in the repo."""
    venv: Path
    variables: dict[str, str]
    """The variables of its developer's shell."""

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"


def load_projects() -> list[Project]:
    return [Project.model_validate(load) for load in json.loads(MANIFEST.read_text())["projects"]]


def prepare(project: Project, directory: Path, tools: Path, name: str = "repo") -> Ready:
    """Prepare the project in the folder `name` in `directory`, from its download to its environment.

    `tools` is the folder of the package managers. Raises `BenchError` if a step fails.
    """
    repo, root = unpack(project, download(project, directory), directory, name)
    return install(project, repo, root, directory, tools)


def download(project: Sdist, directory: Path) -> Path:
    """Download the sdist; pip checks its hash before it opens it."""
    pin = directory / f"{project.name}.txt"
    pin.write_text(f"{project.name}=={project.version} --hash=sha256:{project.sha256}\n")
    folder = directory / f"sdist-{project.name}"
    source = ("--no-deps", "--no-binary", project.name)
    run_pip(
        "download", "--quiet", *source, "--dest", folder, "--require-hashes", "--requirement", pin, folder=directory
    )
    (sdist,) = folder.iterdir()
    return sdist


def unpack(project: Sdist, sdist: Path, directory: Path, name: str) -> tuple[Path, Path]:
    """Unpack the project into a git repo with one commit; return the repo and the project's folder in it."""
    if hashlib.sha256(sdist.read_bytes()).hexdigest() != project.sha256:
        raise BenchError(f"{sdist.name} does not match the hash in the manifest")
    with tarfile.open(sdist) as archive:
        archive.extractall(directory / "unpacked", filter="data")
    (top,) = (directory / "unpacked").iterdir()
    repo = directory / name
    root = repo / project.folder
    root.parent.mkdir(parents=True, exist_ok=True)
    top.rename(root)
    for name, text in project.files.items():
        (root / name).write_text(text)
    # A project's own .gitignore takes precedence.
    if not (root / ".gitignore").exists():
        (repo / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED))
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    run_checked(["git", "init", "-q", "-b", "main"], repo)
    run_checked(["git", "add", "-A"], repo)
    run_checked(["git", *identity, "commit", "-q", "-m", f"{project.name} {project.version}"], repo, FIXED)
    run_checked(["git", "tag", f"v{project.version}"], repo)
    return repo, root


def install(project: Project, repo: Path, root: Path, directory: Path, tools: Path) -> Ready:
    """Make the project's environment, with the project installed editable."""
    if project.manager:
        venv, variables = _MANAGERS[project.manager](root, directory, tools)
    else:
        venv = root / project.venv if project.venv else directory / "environment"
        make_environment(venv)
        variables = {} if project.venv else {"VIRTUAL_ENV": str(venv)}
    packages = [PYTEST, *project.packages] if not project.unittest else list(project.packages)
    run_pip("install", "--quiet", *packages, "--editable", ".", python=venv / "bin" / "python", folder=root)
    return Ready(repo, root, venv, variables)


def _with_poetry(root: Path, directory: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    program = install_tool("poetry", tools)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "POETRY_CONFIG_DIR": str(directory / "poetry-config"),
        "POETRY_CACHE_DIR": str(directory / "poetry-cache"),
    }
    run_checked([program, "--no-plugins", "env", "use", sys.executable], root, variables)
    output = run_checked([program, "--no-plugins", "env", "info", "--path"], root, variables)
    return Path(output.strip()), variables


def _with_pdm(root: Path, directory: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    """Make an environment for pdm, which writes the project's interpreter into `.pdm-python`."""
    program = install_tool("pdm", tools)
    venv = directory / "environment"
    make_environment(venv)
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PDM_CHECK_UPDATE": "false"}
    run_checked([program, "use", "--quiet", "-f", venv / "bin" / "python"], root, variables)
    return venv, variables


def _with_hatch(root: Path, directory: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    program = install_tool("hatch", tools)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HATCH_DATA_DIR": str(directory / "hatch"),
        "HATCH_CACHE_DIR": str(directory / "hatch-cache"),
        "HATCH_CONFIG": str(directory / "hatch.toml"),
        "HATCH_PYTHON": sys.executable,
    }
    (directory / "hatch.toml").touch()
    run_checked([program, "env", "create"], root, variables)
    return Path(run_checked([program, "env", "find"], root, variables).strip()), variables


def _with_uv(root: Path, directory: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    """Make an environment beside the repo, which uv finds from within the repo."""
    del root
    program = install_tool("uv", tools)
    venv = directory / ".venv"
    make_environment(venv)
    return venv, {"PATH": f"{program.parent}:{os.environ['PATH']}"}


_MANAGERS = {"poetry": _with_poetry, "pdm": _with_pdm, "hatch": _with_hatch, "uv": _with_uv}
