"""Find true fixes and ordinary changes in the history of a project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from changes.projects import Clone, CloneWorkbench
from redstart.toolkit.languages.registry import is_test_path
from verify_heldout.sabotages import TrueFix

_FIX = re.compile(r"\b(?:fix\w*|bug\w*|regression|issue|revert\w*|correct\w*|repair\w*|security|cve|ghsa|dos)\b", re.I)
"""What the title of a commit says that is, or may be, a fix."""


class MinedFix(NamedTuple):
    """A commit of the history that was tested here: its tests fail without it and pass with it."""

    base: str
    commit: str
    fix: TrueFix


class OrdinaryChange(NamedTuple):
    """A merged change that is no fix."""

    base: str
    commit: str
    title: str


def list_candidates(clone: Clone, data: Path) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    """List the candidates of true fixes as base, commit, source and tests, the newest first."""
    rows = (json.loads(line) for line in (data / "fix_commits.jsonl").read_text().splitlines())
    project = clone.project
    chosen = [row for row in rows if row["repo"] == project.name and row["date"] >= project.since and row["strong"]]
    chosen.sort(key=lambda row: (row["date"], row["fix"]), reverse=True)
    return [(row["base"], row["fix"], tuple(row["src"]), tuple(row["tests"])) for row in chosen]


def mine_fixes(clone: Clone, data: Path, bench: CloneWorkbench) -> Iterator[MinedFix]:
    """Yield the candidates whose tests fail without the source and pass with it."""
    for base, commit, source, tests in list_candidates(clone, data):
        before, after = clone.read_files(base), clone.read_files(commit)
        fix = TrueFix(before, after, source, tests, ())
        if proven := _find_proven(fix, bench):
            yield MinedFix(base, commit, fix._replace(proven=proven))


def _find_proven(fix: TrueFix, bench: CloneWorkbench) -> tuple[str, ...]:
    tests = [path for path in fix.tests if path in fix.after and path.endswith(".py")]
    if not tests:
        return ()
    with_change = bench.run(fix.after, tests)
    restored = {path: fix.before.get(path) for path in fix.source}
    files = {path: data for path, data in {**fix.after, **restored}.items() if data is not None}
    without = bench.run(files, tests)
    if any(outcome in ("FAILED", "ERROR") for outcome in with_change.values()):
        return ()
    return tuple(id_ for id_, outcome in with_change.items() if outcome == "PASSED" and without.get(id_) == "FAILED")


def list_ordinary(clone: Clone) -> list[OrdinaryChange]:
    """List the changes of the main line that do not say that they fix something, the newest first.

    Changes of tests, of source alone and of neither take turns: most commits of some projects only bump a version.
    """
    since = f"--since={clone.project.since}"
    lines = clone.ask_git("log", "--first-parent", since, "--format=%H%x09%P%x09%s", "HEAD").splitlines()
    groups: tuple[list[OrdinaryChange], ...] = ([], [], [])
    for commit, parents, title in map(partial(str.split, sep="\t", maxsplit=2), lines):
        if parents and not _FIX.search(title):
            change = OrdinaryChange(parents.split()[0], commit, title)
            paths = clone.ask_git("diff", "--name-only", change.base, commit).splitlines()
            in_source = any(path.startswith(clone.project.source) for path in paths)
            groups[0 if any(map(is_test_path, paths)) else 1 if in_source else 2].append(change)
    return [change for changes in zip_longest(*groups) for change in changes if change is not None]
