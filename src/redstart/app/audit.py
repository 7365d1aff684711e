"""Use cases of an audit: start one on a file or directory, read its report, read and write the baseline file."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from redstart.app.runs import keep_run
from redstart.app.wire import AppContext, create_question_options
from redstart.app.workspace import create_own_environment
from redstart.core.errors import ConfigError
from redstart.core.finding import ChangedLines, Finding, FindingList, KnownFindings, Risk, Scan
from redstart.core.run import GOAL_LIMIT, Limits, RunSpec, RunState, Suite
from redstart.core.shell import Environment
from redstart.core.tasks import AuditTask
from redstart.toolkit.base.git import require_git
from redstart.toolkit.repo.trees import find_changed_lines
from redstart.toolkit.suites.detection.history import find_work_root

BASELINE = "redstart-baseline.json"
LARGEST_BASELINE = 20_000_000
_REMEDY = "write a new one with: redstart audit --write-baseline"


class AuditRequest(NamedTuple):
    """The user's options for an audit, besides the path."""

    limits: Limits
    goal: str = ""
    since: str = ""
    fail_on: Risk | None = None
    review: bool = True
    """Whether a model reviews the code besides the tools."""
    baseline: Path | None = None
    """The file of findings that are already accepted."""


async def create_audit_run(app: AppContext, path: Path, request: AuditRequest) -> RunState:
    """Take a snapshot of the repo around the file or folder and store a new run on it. No file is changed, and none of
    its code runs.

    Raises `ConfigError` if the path or the ref does not exist, or if the baseline cannot be read.
    """
    if not path.exists():
        raise ConfigError(f"{path} does not exist", remedy="give the path of a file or directory")
    if len(request.goal) > GOAL_LIMIT:
        raise ConfigError(f"the goal is longer than {GOAL_LIMIT} characters", remedy="shorten the text of --goal")
    require_git()
    path = path.resolve()
    folder = path if path.is_dir() else path.parent
    root = find_work_root(folder)
    blobs = app.adapters.blobs
    relative_path = "" if path == root else path.relative_to(root).as_posix()
    lines = ChangedLines(lines=find_changed_lines(root, request.since)) if request.since else None
    baseline = read_baseline(request.baseline) if request.baseline else None
    checks = app.settings.checks.checks
    environment = (
        create_own_environment(root) if any(checks.commands.values()) else _create_placeholder_environment(root)
    )
    spec = RunSpec(
        task=AuditTask(
            scan=Scan(
                paths=(relative_path,) if relative_path else (),
                lines=blobs.put(lines.model_dump_json().encode()) if lines is not None else "",
                known=blobs.put(baseline.model_dump_json().encode()) if baseline is not None else "",
                fail_on=request.fail_on,
                review=request.review,
            )
        ),
        goal=request.goal,
        base=app.trees.take(root),
        suite=Suite(runner="none", environment=blobs.put(environment.model_dump_json().encode())),
        limits=request.limits,
        sandbox=app.settings.sandbox.limits,
        asks=create_question_options(app.settings) if request.review else RunSpec.model_fields["asks"].default,
        checks=checks,
        repo=root.name,
        tenant=app.settings.tenant,
    )
    return await keep_run(app, spec, folder=folder)


def _create_placeholder_environment(root: Path) -> Environment:
    """Make a placeholder environment: an audit runs no code of the project, but every run needs an environment."""
    return Environment(mount=str(root), python=sys.executable)


def load_report(app: AppContext, state: RunState) -> FindingList:
    """Load all findings of a finished audit, with its warnings."""
    full = state.now.audit.full if state.now.audit else ""
    return FindingList.model_validate_json(app.adapters.blobs.get(full)) if full else FindingList()


def find_baseline(path: Path) -> Path | None:
    """Find the baseline file in the folder of `path` or the nearest folder above it, within the git repo."""
    folder = (path if path.is_dir() else path.parent).resolve()
    root = find_work_root(folder)
    places = (folder, *folder.parents)
    inside = places[: places.index(root) + 1] if root in places else (folder,)
    return next((place / BASELINE for place in inside if (place / BASELINE).is_file()), None)


def read_baseline(path: Path) -> KnownFindings:
    """Read the accepted findings. Raises `ConfigError` if the file cannot be read or is not a baseline."""
    try:
        if path.stat().st_size > LARGEST_BASELINE:
            raise ConfigError(f"the baseline {path} is larger than {LARGEST_BASELINE / 1e6:.0f} MB", remedy=_REMEDY)
        return KnownFindings.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"the baseline {path} cannot be read: {error.strerror or error}", remedy=_REMEDY) from error
    except ValidationError as error:
        raise ConfigError(f"{path} is not a baseline file", remedy=_REMEDY) from error


def write_baseline(path: Path, findings: tuple[Finding, ...]) -> None:
    """Record these findings as accepted. Raises `ConfigError` if the file cannot be written."""
    counts = Counter(sorted(finding.fingerprint for finding in findings))
    try:
        path.write_text(KnownFindings(findings=dict(counts)).model_dump_json(indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"the baseline {path} cannot be written: {error.strerror or error}",
            remedy="choose another file: --baseline",
        ) from error
