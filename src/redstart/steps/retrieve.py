"""Find the code that matters for the failing tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fnmatch import fnmatch

from redstart.core.context import Chunk, Context
from redstart.core.progress import Strategy
from redstart.core.run import Mode, RunState
from redstart.core.spectrum import Spectrum
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import Search, ripgrep_search, walk_search
from redstart.toolkit.honesty.verdict.baseline import list_failing_cases
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.retrieval.rank import BUDGET, MAX_FILES, RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.suite_directory import TreeView

MOST_CHOSEN = 200
"""Maximum files that an audit with a goal covers."""
MANY_FILES = 500
"""Number of files from which ripgrep on a checkout is faster than our own search; both find the same."""


async def retrieve(run: RunState, ports: Ports) -> Context:
    return RETRIEVALS[run.spec.mode](run, ports)


def _rank_code(run: RunState, ports: Ports) -> Context:
    """Rank the files as seen from the folder of the suite: tracebacks, IDs and imports are relative to it."""
    suite = run.spec.suite
    view = TreeView.open(suite, ports.trees, run.workspace)
    files = sorted(view.snapshot_paths)
    cases = list_failing_cases(run, ports.blobs)
    width = 1 + run.count_strategy_uses(Strategy.wider)
    question = RankingQuestion(
        cases=cases,
        goal=run.spec.goal,
        tests=sorted({path for case in cases if (path := view.find_file(case.id))}),
        is_test=is_test_path,
        budget=BUDGET * width,
        files=MAX_FILES * width,
        spectrum=_load_spectrum(run, ports),
    )
    if len(files) < MANY_FILES or not shutil.which("rg"):
        context = rank(question, files, view.read, walk_search(files, view.read))
    else:
        with ports.trees.checkout(run.workspace) as folder:
            context = rank(question, files, view.read, _map_search(suite.to_runner_path, ripgrep_search(folder)))
    return context.with_paths(view.snapshot_paths)


def _load_spectrum(run: RunState, ports: Ports) -> Spectrum | None:
    """Return the spectrum of the original code; None once there is a draft, whose lines differ."""
    reproduction = run.now.reproduce
    if reproduction is None or not reproduction.spectrum or run.workspace.tree != run.base.tree:
        return None
    return Spectrum.model_validate_json(ports.blobs.get(reproduction.spectrum))


def _select_planned_files(run: RunState, ports: Ports) -> Context:
    """Return the existing files that the audit's plan names; empty if the plan covers all files."""
    patterns = run.now.plan.files if run.now.plan else ()
    files = ports.trees.list_files(run.workspace)
    paths = [path for path in files if any(_is_named(path, item) for item in patterns)]
    chunks = (Chunk(path=path, start=1, end=1, score=1.0, source="goal") for path in paths[:MOST_CHOSEN])
    return Context(chunks=tuple(chunks), left_out=max(len(paths) - MOST_CHOSEN, 0))


def _is_named(path: str, pattern: str) -> bool:
    """Return whether a path is the named file, is inside the named folder, or matches the pattern."""
    pattern = pattern.strip().removeprefix("./").rstrip("/")
    if not pattern or pattern in (".", "*", "**"):
        return False
    return path == pattern or path.startswith(f"{pattern}/") or path.endswith(f"/{pattern}") or fnmatch(path, pattern)


def _map_search(as_shown: Callable[[str], str], search: Search) -> Search:
    return lambda words: [hit._replace(path=as_shown(hit.path)) for hit in search(words)]


RETRIEVALS: dict[Mode, Callable[[RunState, Ports], Context]] = {
    Mode.fix: _rank_code,
    Mode.create: _rank_code,
    Mode.improve: _rank_code,
    Mode.audit: _select_planned_files,
}
