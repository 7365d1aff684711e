"""Find the failing tests that are no targets, because a reason outside of the code makes them fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from redstart.core.report import Case
from redstart.core.run import RunState
from redstart.core.set_aside import SetAside, SetAsideSource
from redstart.core.shell import Environment
from redstart.ports.bundle import Ports
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.honesty.verdict.set_aside import add, build_set_aside
from redstart.toolkit.suites.problems.environment import EnvironmentProblem
from redstart.toolkit.suites.problems.foreign import find_foreign_failures
from redstart.toolkit.suites.problems.project import ProjectView
from redstart.toolkit.suites.problems.submodules import list_empty_submodules


def find_foreign_cases(
    run: RunState, ports: Ports, cases: Sequence[Case], load_project: Callable[[], ProjectView]
) -> dict[str, EnvironmentProblem]:
    """Find the failing tests that the code is not to blame for, by ID. Empty unless tests may be set aside."""
    if not run.spec.set_aside_policy.allows or not cases:
        return {}
    suite, base, trees = run.spec.suite, run.spec.base, ports.trees
    environment = Environment.model_validate_json(ports.blobs.get(suite.environment))
    copied = (*environment.copies, *environment.left_out)
    submodules = list_empty_submodules(trees.list_files(base), partial(trees.read, base), copied)
    return find_foreign_failures(cases, load_project(), submodules, environment.mount, suite.folder)


def group_by_reason(problems: Mapping[str, EnvironmentProblem], blobs: Blobs) -> tuple[SetAside, ...]:
    """Build one entry for each reason."""
    groups: dict[str, list[str]] = {}
    for id_, problem in problems.items():
        groups.setdefault(problem.words, []).append(id_)
    entries: tuple[SetAside, ...] = ()
    for reason, ids in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        entries = add(entries, build_set_aside(ids, reason, SetAsideSource.redstart, blobs), blobs)
    return entries
