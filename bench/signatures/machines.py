"""Machines that differ in what tracebacks show: where the repo lies, which Python, how pytest tells of a failure."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from _environments import DROPPED, BenchError, install_tool, run_checked
from redstart.core.report import Case
from redstart.toolkit.languages.python.node_ids import pytest_ids
from redstart.toolkit.suites.reading.junit import read_cases
from signatures.breaks import Break

MOST_RED = 5
"""Of a run of the whole suite, so many red tests are looked at."""
OPTIONS = (
    *("-oaddopts=", "-ojunit_family=xunit1", "-ojunit_logging=no", "--rootdir=.", "-p", "no:cacheprovider"),
    *("--color=no", f"--maxfail={MOST_RED}", "--continue-on-collection-errors", "-q"),
)
_TEST = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|tests?)\.py$|(?:^|/)tests?/")


class Machine(NamedTuple):
    name: str
    python: str
    root: str
    """Where the repo is said to lie, with the package's name for `{}`."""
    home: str
    """Where its Python is said to lie."""
    temporary: str
    tb: str
    seed: int
    shift: int = 0
    """How many lines are put in above every function."""
    variables: tuple[tuple[str, str], ...] = ()
    options: tuple[str, ...] = ()


MACHINES = (
    Machine("desk", "3.11", "/home/dev/src/{}", "/usr/lib", "/tmp", "auto", 0),
    Machine("runner", "3.12", "/builds/tools/{}", "/usr/local", "/var/tmp", "short", 7, 3, (("CI", "true"),), ("-n1",)),
    Machine("laptop", "3.13", "/Volumes/code/{}", "/opt/python", "/private/var/folders/q1/x8z/T", "native", 4242, 5),
    Machine("server", "3.9", "/srv/build/{}/repo", "/opt/py39", "/tmp/job-881", "long", 123, 17),
    Machine("box", "3.10", "/workspace/{}", "/usr/lib", "/dev/shm/t", "auto", 99, 1, (("COLUMNS", "190"),)),
    Machine("cloud", "3.13", "/mnt/agent/7/s/{}", "/usr/local", "/tmp", "short", 31, 40, (("CI", "true"),)),
)


class Package(NamedTuple):
    name: str
    folder: Path
    """Where its sdist is unpacked."""
    sources: str
    """The folder, or the file, of its code."""
    tests: tuple[str, ...] = ()
    """The arguments that choose its tests."""

    @property
    def files(self) -> list[str]:
        place = self.folder / self.sources
        paths = [place] if place.is_file() else sorted(place.rglob("*.py"))
        names = [str(item.relative_to(self.folder)) for item in paths]
        return [name for name in names if not _TEST.search(name)]


def create_interpreter(machine: Machine, home: Path, extra_packages: Sequence[str]) -> Path:
    """An environment with pytest and what the packages need besides; made once."""
    venv = home / f"python-{machine.python}"
    if not venv.exists():
        uv = install_tool("uv", home)
        installed = sorted(Path("~/.pyenv/versions").expanduser().glob(f"{machine.python}.*/bin/python"))
        run_checked([uv, "venv", "--quiet", "--python", installed[-1] if installed else machine.python, venv], home)
        packages = ["pytest", "pytest-xdist", *extra_packages]
        run_checked([uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *packages], home)
    return venv / "bin" / "python"


class Job(NamedTuple):
    """One run of a package's tests: with this bug, and of `ids` where there are any."""

    broken: Break
    ids: tuple[str, ...] = ()


def run_jobs(
    package: Package, machine: Machine, python: Path, home: Path, jobs: Sequence[Job]
) -> list[list[Case] | None]:
    """What is red there, of each job; None where the run left no report."""
    repo = home / f"{package.name}-{machine.name}"
    if not repo.exists():
        shutil.copytree(package.folder, repo, ignore=shutil.ignore_patterns("docs", "*.egg-info"))
        for path in repo.rglob("*.py"):
            path.write_text(
                _shift_lines(path.read_text(errors="surrogateescape"), machine.shift), errors="surrogateescape"
            )
    temporary = home / f"tmp-{machine.name}"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    reports = [temporary / f"junit-{number}.xml" for number in range(len(jobs))]
    job_specs = [
        {
            "file": job.broken.file,
            "text": _shift_lines(job.broken.text, machine.shift),
            "arguments": [*OPTIONS, f"--junitxml={report}", f"--tb={machine.tb}", *machine.options, *tests],
        }
        for job, report in zip(jobs, reports, strict=True)
        for tests in [job.ids or package.tests]
    ]
    (temporary / "jobs.json").write_text(json.dumps(job_specs))
    _start(machine, python, repo, temporary)
    return [_read(report, package, machine, repo, temporary, python) for report in reports]


def _start(machine: Machine, python: Path, repo: Path, temporary: Path) -> None:
    paths = [str(repo), str(repo / "src")] if (repo / "src").is_dir() else [str(repo)]
    environ = {name: value for name, value in os.environ.items() if name not in (*DROPPED, "CI", "COLUMNS")}
    environ |= {"PYTHONHASHSEED": str(machine.seed), "TMPDIR": str(temporary), "PYTHONPATH": ":".join(paths)}
    command = ["nice", "-n", "10", str(python), str(Path(__file__).parent / "within.py"), str(temporary / "jobs.json")]
    subprocess.run(command, cwd=repo, env=environ | dict(machine.variables), stdin=subprocess.DEVNULL, check=True)


def _read(
    report: Path, package: Package, machine: Machine, repo: Path, temporary: Path, python: Path
) -> list[Case] | None:
    cases = read_cases(report.read_text(errors="replace"), pytest_ids) if report.exists() else None
    if cases is None:
        return None
    places = {
        str(repo): machine.root.format(package.name),
        str(temporary): machine.temporary,
        str(python.parents[1]): f"{machine.home}/venv",
        str(python.resolve().parents[1]): machine.home,
    }
    return [_replace_places(case, places) for case in cases if case.is_red]


def _replace_places(case: Case, places: Mapping[str, str]) -> Case:
    """With the places of this machine replaced by those that the machine is said to have."""
    message, detail = case.message, case.detail
    for real_path, shown_path in places.items():
        message, detail = message.replace(real_path, shown_path), detail.replace(real_path, shown_path)
    return case.model_copy(update={"message": message, "detail": detail})


def _shift_lines(text: str, lines: int) -> str:
    """With comments above the file and above every function and class at its top."""
    comments = "".join(f"# line {number} that was not there\n" for number in range(lines))
    text = re.sub(r"(?<=\n\n)(?=(?:def|class) )", comments, text)
    shebang = re.match(r"(?:#.*\n)*", text)
    end = shebang.end() if shebang else 0
    return text[:end] + comments + text[end:]


def unpack_sdist(sdist: Path, directory: Path) -> Path:
    """The folder of an sdist. Raises `BenchError` where it does not hold one folder."""
    place = directory / f"sdist-{sdist.name}"
    if not place.exists():
        shutil.unpack_archive(sdist, place, filter="data")
    folders = [path for path in place.iterdir() if path.is_dir()]
    if len(folders) != 1:
        raise BenchError(f"{sdist.name} holds {len(folders)} folders")
    return folders[0]
