"""Real projects with their history and an environment that runs their tests, and runs of `redstart verify` in them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from _environments import PYTEST, BenchError, make_environment, run, run_checked, run_pip
from redstart.core.verification import Verification

IDENTITY = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in {"NAME": "bench", "EMAIL": "bench@localhost", "DATE": "2026-01-01T00:00:00+0000"}.items()
}
SUITE_SECONDS = 240
"""Time limit of a run outside Redstart: a mistake in the code may make it endless."""
_OUTCOME = re.compile(r"(PASSED|FAILED|ERROR|SKIPPED) (\S+::.*?)(?: - .*)?$")


class Project(NamedTuple):
    """A project of the evaluation data."""

    name: str
    """As in `fix_commits.jsonl`."""
    packages: tuple[str, ...]
    """What its tests need besides the project and pytest."""
    since: str
    """The first day whose commits run in the environment of the newest commit."""
    source: str
    """The folder of its source."""

    @property
    def bundle(self) -> str:
        return f"{self.name.replace('/', '__')}.bundle"


PROJECTS = (
    Project("andialbrecht/sqlparse", (), "2020-01-01", "sqlparse/"),
    Project("marshmallow-code/marshmallow", ("simplejson", "pytz"), "2022-01-01", "src/"),
)


class Clone(NamedTuple):
    """A project's repo, with an environment in it."""

    project: Project
    root: Path

    @property
    def python(self) -> Path:
        return self.root / ".venv" / "bin" / "python"

    def ask_git(self, *arguments: str) -> str:
        return run_checked(["git", *arguments], self.root)

    def read_files(self, commit: str) -> dict[str, bytes]:
        """Read all regular files of a commit."""
        files: dict[str, bytes] = {}
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "files.tar"
            self.ask_git("archive", "--format=tar", f"--output={archive}", commit)
            unpacked = Path(folder) / "files"
            shutil.unpack_archive(archive, unpacked, filter="data")
            for path in unpacked.rglob("*"):
                if path.is_file() and not path.is_symlink():
                    files[path.relative_to(unpacked).as_posix()] = path.read_bytes()
        return files

    def commit_files(self, parent: str, start: str, files: Mapping[str, bytes | None]) -> str:
        """Make a commit on `parent` that has the files of `start`, with these over them; None deletes a file."""
        with tempfile.TemporaryDirectory() as folder:
            variables = {"GIT_INDEX_FILE": str(Path(folder) / "index"), **IDENTITY}
            run_checked(["git", "read-tree", start], self.root, variables)
            for path, data in files.items():
                if data is None:
                    run_checked(["git", "update-index", "--force-remove", path], self.root, variables)
                    continue
                (Path(folder) / "blob").write_bytes(data)
                blob = run_checked(["git", "hash-object", "-w", Path(folder) / "blob"], self.root).strip()
                entry = f"100644,{blob},{path}"
                run_checked(["git", "update-index", "--add", "--cacheinfo", entry], self.root, variables)
            tree = run_checked(["git", "write-tree"], self.root, variables).strip()
            return run_checked(["git", "commit-tree", tree, "-p", parent, "-m", "change"], self.root, variables).strip()


class CloneWorkbench:
    """Runs tests in copies of a project, without Redstart. Implements `Workbench`.

    Equal runs happen once: the outcomes are kept in a folder. A run that does not end in time has no outcomes.
    """

    def __init__(self, clone: Clone, folder: Path) -> None:
        self._clone, self._folder = clone, folder

    def run(self, files: Mapping[str, bytes], tests: Sequence[str] = ()) -> dict[str, str]:
        digest = hashlib.sha256(repr((self._clone.project.name, sorted(files.items()), tests)).encode()).hexdigest()
        path = self._folder / f"{digest}.json"
        if not path.exists():
            with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
                lines = self._run_pytest(Path(folder), files, tests, {})
            matches = (_OUTCOME.match(line) for line in lines)
            write_whole(path, json.dumps({match[2]: match[1] for match in matches if match}))
        return json.loads(path.read_text())

    def record(self, files: Mapping[str, bytes], tests: Sequence[str]) -> list[tuple[str, str]]:
        with tempfile.TemporaryDirectory(prefix="redstart-bench-") as folder:
            record = Path(folder) / "record"
            record.touch()
            self._run_pytest(Path(folder) / "project", files, tests, {"BENCH_RECORD": str(record)})
            pairs = (line.partition("\t") for line in record.read_text().splitlines())
            return [(key, value) for key, _, value in pairs]

    def _run_pytest(
        self, folder: Path, files: Mapping[str, bytes], tests: Sequence[str], variables: Mapping[str, str]
    ) -> list[str]:
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        source = folder / self._clone.project.source
        path = str(source if source.name == "src" else folder)
        environ = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        command = ["nice", self._clone.python, "-m", "pytest", "-q", "-rA", "--tb=no", "-p", "no:cacheprovider", *tests]
        try:
            return run(command, folder, environ, within=SUITE_SECONDS).stdout.splitlines()
        except subprocess.TimeoutExpired:
            return []


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is never there in part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".part").write_text(text)
    path.with_suffix(".part").rename(path)


def open_clone(project: Project, data: Path, keep: Path) -> Clone:
    """Return the project's clone in the folder `keep`; it is made once. Raises `BenchError` if that fails."""
    bundle = data / "histories" / project.bundle
    if not bundle.is_file():
        raise BenchError(f"{bundle.name} is not among the histories of the evaluation data")
    root = keep / project.name.replace("/", "__")
    made = keep / f"{root.name}.made"
    if made.exists():
        return Clone(project, root)
    print(f"preparing {project.name}", file=sys.stderr, flush=True)
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    run_checked(["git", "init", "-q", "-b", "bench"], root)
    run_checked(["git", "fetch", "-q", bundle, "refs/*:refs/bundle/*"], root)
    newest = run_checked(
        ["git", "for-each-ref", "--sort=-committerdate", "--count=1", "--format=%(objectname)", "refs/bundle"], root
    )
    run_checked(["git", "reset", "-q", "--hard", newest.strip()], root)
    python = make_environment(root / ".venv")
    run_pip("install", "--quiet", PYTEST, *project.packages, "--editable", ".", python=python, folder=root)
    made.touch()
    return Clone(project, root)


class VerifiedChange(NamedTuple):
    """What the command said."""

    result: Verification | None
    """None if the command printed no result."""
    code: int
    seconds: float
    error: str = ""


def verify(root: Path, home: Path, *options: str, python: Path | None = None) -> VerifiedChange:
    """Run `redstart verify` on the repo as a user would."""
    began = time.monotonic()
    environ = {name: value for name, value in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    chosen = ("--python", str(python)) if python else ()
    completed = subprocess.run(
        [sys.executable, "-m", "redstart.cli.main", "verify", root, "--json", "--no-input", *chosen, *options],
        env={**environ, "REDSTART_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = completed.stdout.strip()
    result = Verification.model_validate_json(lines) if lines.startswith("{") else None
    return VerifiedChange(
        result, completed.returncode, time.monotonic() - began, "" if result else completed.stderr.strip()[-600:]
    )


def list_accepted(tests: Iterable[str]) -> list[str]:
    return [part for test in tests for part in ("--accept", test)]
