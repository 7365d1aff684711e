"""Keep the results of the base of a change: the next verification against the same base need not run its tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from pydantic import ValidationError

from redstart.app.verify.kept_files import KeptFiles
from redstart.core.change import Snapshot
from redstart.core.errors import StoreError
from redstart.core.frozen import FrozenValue
from redstart.core.report import CaseList, Report
from redstart.core.run import RunSpec
from redstart.core.shell import Environment
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites.execute import SuiteRun, load_environment
from redstart.toolkit.suites.problems.run_problems import SuiteProblem

FOLDER = "base-results"
MOST_KEPT = 50
_PACKAGES = ("*.dist-info", "*.egg-info", "*.egg-link", "*.pth")
_HISTORY = frozenset(("git_objects", "git_head", "git_refs", "git_shallow"))


class KeptResult(FrozenValue):
    """A run of the base with results for each test."""

    report: Report
    unexplained: str = ""
    misplaced: str = ""


class KeptResults:
    """The results by tree, suite and environment. An environment is another one as soon as a package in it changes.

    `find` and `save` take the key that `compute_key` returns before the run.
    """

    def __init__(self, home: Path, blobs: Blobs) -> None:
        self._files, self._blobs = KeptFiles(home / FOLDER, MOST_KEPT), blobs

    def find(self, key: str) -> SuiteRun | None:
        """Return the kept results; None if there are none, or not all of them any more."""
        text = self._files.find(key)
        if text is None:
            return None
        try:
            kept = KeptResult.model_validate_json(text)
            cases = CaseList.model_validate_json(self._blobs.get(kept.report.full)).cases
            self._blobs.get(kept.report.output)
        except (ValidationError, StoreError):
            return None
        return SuiteRun(kept.report, cases, SuiteProblem.none, kept.unexplained, kept.misplaced)

    def save(self, key: str, suite_run: SuiteRun) -> None:
        """Keep the results, unless there are none per test."""
        if suite_run.problem or not key:
            return
        kept = KeptResult(report=suite_run.report, unexplained=suite_run.unexplained, misplaced=suite_run.misplaced)
        self._files.save(key, kept.model_dump_json())

    def compute_key(self, tree: Snapshot, spec: RunSpec) -> str:
        """Compute the key of the results of that suite on that tree, as the environment is now.

        Empty if services of this machine take part in them: such results are not kept.
        """
        return compute_setup_key(self._blobs, spec, tree.tree)


def compute_setup_key(blobs: Blobs, spec: RunSpec, *parts: str) -> str:
    """Compute the key of results that depend on the parts, and on the suite and the environment as it is now.

    Empty if services of this machine take part in them.
    """
    environment = load_environment(blobs, spec)
    if environment.services:
        return ""
    known = (
        version("redstart"),
        *parts,
        environment.model_dump_json(exclude=set(_HISTORY)),
        spec.suite.model_dump_json(exclude={"environment"}),
        spec.sandbox.model_dump_json(),
        *_list_installed(environment),
    )
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]


def _list_installed(environment: Environment) -> Iterator[str]:
    """List what tells one state of the environment from another: its packages, and the files copied into each tree."""
    roots = [Path(root) for root in (*environment.read_only, *environment.links.values())]
    patterns = [f"lib/python*/site-packages/{pattern}" for pattern in _PACKAGES]
    files = {Path(environment.python), *(root / ".package-lock.json" for root in roots)}
    files |= {file for root in roots for pattern in patterns for file in root.glob(pattern)}
    for copy in environment.copies:
        path = Path(environment.mount, copy)
        files |= {path, *(path.rglob("*") if path.is_dir() else ())}
    for file in sorted(files):
        with suppress(OSError):
            state = file.stat()
            yield f"{file} {state.st_size} {state.st_mtime_ns}"
