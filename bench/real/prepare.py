"""A real project as it lies on a developer's disk: unpacked, committed, and installed by the tool that manages it."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.core.noun import Noun
from redstart.toolkit.installs.pip import pip_for

MANIFEST = Path(__file__).parents[1] / "projects.json"
WITHIN = 900.0
"""Seconds that any one command may take."""
PYTEST = "pytest==9.2.0"
TOOLS = ("poetry==2.5.1", "pdm==2.29.3", "hatch==1.18.2")
IGNORED = (
    *("__pycache__/", "*.egg-info/", ".pytest_cache/", ".venv/", "venv/", ".tox/", ".nox/", "build/", "*.so"),
    *(".coverage", "coverage.xml", ".pdm-python", ".hypothesis/"),
)
"""What a project's .gitignore gets."""
FIXED: dict[str, str] = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2024-01-01T00:00:00+00:00")
DROPPED = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTEST_ADDOPTS", "CONDA_PREFIX")


class Mutation(Noun):
    """One change of one file: `old` stands in it once, and `new` once after the change."""

    file: str
    old: str
    new: str


class Sdist(Noun):
    """A release as the package index has it, and where it is put."""

    name: str
    version: str
    sha256: str
    folder: str = ""
    """Where the project lies in the git repo, for one of several in it."""
    files: dict[str, str] = {}
    """Files that its sdist leaves out and its developers have."""


class Project(Sdist):
    shape: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """What its tests need besides itself and pytest."""
    command: str = ""
    """How its tests are run; empty for what redstart finds by looking."""
    unittest: bool = False
    """Whether its tests are run by unittest outside."""
    manager: str = ""
    """The tool that makes its environment and is then to name it: poetry, pdm, hatch or uv. Empty where the environment
    is found without one."""
    venv: str = ""
    """Where in the project its environment lies; empty for a folder elsewhere, which is active then."""
    known_red: tuple[str, ...] = ()
    """Ids that are red without the mutation."""
    quick: bool = False
    mutation: Mutation


class Ready(NamedTuple):
    """A project that can be tested."""

    repo: Path
    root: Path
    """The project's folder in the repo."""
    venv: Path
    variables: dict[str, str]
    """What its developer's shell has set."""

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"


class BenchError(Exception):
    """A project cannot be had, or is not as the manifest says."""


def run(
    command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Without what is set for redstart's own environment, so that the project's decides."""
    environ = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env={**environ, **(variables or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=WITHIN,
        check=False,
    )


def must(command: Sequence[str | Path], folder: Path, variables: Mapping[str, str] | None = None) -> str:
    done = run(command, folder, variables)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
        raise BenchError(f"{shlex.join(str(word) for word in command)} ended with {done.returncode}:\n{tail}")
    return done.stdout


def projects() -> list[Project]:
    return [Project.model_validate(one) for one in json.loads(MANIFEST.read_text())["projects"]]


def prepare(project: Project, into: Path, tools: Path, name: str = "repo") -> Ready:
    """The project in the folder `name` in `into`, from its download to its environment.

    `tools` is where the managers are installed. Raises `BenchError` where a step of it fails.
    """
    repo, root = unpack(project, download(project, into), into, name)
    return install(project, repo, root, into, tools)


def download(project: Sdist, into: Path) -> Path:
    """The sdist, whose hash pip checks before it looks into it."""
    pin = into / f"{project.name}.txt"
    pin.write_text(f"{project.name}=={project.version} --hash=sha256:{project.sha256}\n")
    folder = into / f"sdist-{project.name}"
    pip = pip_for(Path(sys.executable), os.environ)
    must(
        [
            *pip,
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            project.name,
            "--dest",
            folder,
            "--require-hashes",
            "--requirement",
            pin,
        ],
        into,
    )
    (found,) = folder.iterdir()
    return found


def unpack(project: Sdist, sdist: Path, into: Path, name: str) -> tuple[Path, Path]:
    """The git repo with one commit that holds the project, and the project's folder in it."""
    if hashlib.sha256(sdist.read_bytes()).hexdigest() != project.sha256:
        raise BenchError(f"{sdist.name} is not the file that the manifest names")
    with tarfile.open(sdist) as archive:
        archive.extractall(into / "unpacked", filter="data")
    (top,) = (into / "unpacked").iterdir()
    repo = into / name
    root = repo / project.folder
    root.parent.mkdir(parents=True, exist_ok=True)
    top.rename(root)
    for name, text in project.files.items():
        (root / name).write_text(text)
    # Where the project has one, its own says what is ignored.
    if not (root / ".gitignore").exists():
        (repo / ".gitignore").write_text("".join(f"{line}\n" for line in IGNORED))
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    must(["git", "init", "-q", "-b", "main"], repo)
    must(["git", "add", "-A"], repo)
    must(["git", *identity, "commit", "-q", "-m", f"{project.name} {project.version}"], repo, FIXED)
    must(["git", "tag", f"v{project.version}"], repo)
    return repo, root


def install(project: Project, repo: Path, root: Path, into: Path, tools: Path) -> Ready:
    """The project's environment, with the project editable in it."""
    if project.manager:
        venv, variables = _MANAGERS[project.manager](root, into, tools)
    else:
        venv = root / project.venv if project.venv else into / "environment"
        make_venv(venv, root)
        variables = {} if project.venv else {"VIRTUAL_ENV": str(venv)}
    wanted = [PYTEST, *project.packages] if not project.unittest else list(project.packages)
    command = [uv(), "pip", "install", "--quiet", "--python", venv / "bin" / "python"]
    must([*command, *wanted, "--editable", "."], root)
    return Ready(repo, root, venv, variables)


@functools.cache
def uv() -> str:
    found = shutil.which("uv")
    if found is None:
        raise BenchError("uv is not on the PATH")
    return found


def make_venv(venv: Path, root: Path) -> None:
    must([uv(), "venv", "--quiet", "--python", sys.executable, venv], root)


def plain_environment(folder: Path) -> Path:
    """In this folder, with pytest and no plugins: those that lie beside redstart make its start ten times as long."""
    found = folder / "environment"
    if not found.exists():
        made = folder / "environment-to-be"
        shutil.rmtree(made, ignore_errors=True)
        make_venv(made, folder)
        program = made / "bin" / "python"
        must([uv(), "pip", "install", "--quiet", "--compile-bytecode", "--python", program, PYTEST], folder)
        made.rename(found)
    return found


def _with_poetry(root: Path, into: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    program = tool("poetry", tools)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "POETRY_CONFIG_DIR": str(into / "poetry-config"),
        "POETRY_CACHE_DIR": str(into / "poetry-cache"),
    }
    must([program, "--no-plugins", "env", "use", sys.executable], root, variables)
    told = must([program, "--no-plugins", "env", "info", "--path"], root, variables)
    return Path(told.strip()), variables


def _with_pdm(root: Path, into: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    """pdm writes which interpreter is the project's into `.pdm-python`."""
    program = tool("pdm", tools)
    venv = into / "environment"
    make_venv(venv, root)
    variables = {"PATH": f"{program.parent}:{os.environ['PATH']}", "PDM_CHECK_UPDATE": "false"}
    must([program, "use", "--quiet", "-f", venv / "bin" / "python"], root, variables)
    return venv, variables


def _with_hatch(root: Path, into: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    program = tool("hatch", tools)
    variables = {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "HATCH_DATA_DIR": str(into / "hatch"),
        "HATCH_CACHE_DIR": str(into / "hatch-cache"),
        "HATCH_CONFIG": str(into / "hatch.toml"),
        "HATCH_PYTHON": sys.executable,
    }
    (into / "hatch.toml").touch()
    must([program, "env", "create"], root, variables)
    return Path(must([program, "env", "find"], root, variables).strip()), variables


def _with_uv(root: Path, into: Path, tools: Path) -> tuple[Path, dict[str, str]]:
    """An environment beside the repo, which uv finds from within the repo."""
    del tools
    venv = into / ".venv"
    make_venv(venv, root)
    return venv, {"PATH": f"{Path(uv()).parent}:{os.environ['PATH']}"}


_MANAGERS = {"poetry": _with_poetry, "pdm": _with_pdm, "hatch": _with_hatch, "uv": _with_uv}


def tool(name: str, tools: Path) -> Path:
    """A manager's program, in an environment that is made once for all projects and in which only managers are."""
    program = tools / name / "bin" / name
    if not program.exists():
        make_venv(tools / name, tools)
        (pin,) = (one for one in TOOLS if one.startswith(f"{name}=="))
        must([uv(), "pip", "install", "--quiet", "--python", tools / name / "bin" / "python", pin], tools)
    return program
