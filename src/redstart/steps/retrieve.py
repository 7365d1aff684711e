"""Find the code that matters for the failing tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial

from redstart.core.context import Chunk, Context
from redstart.core.course import Strategy
from redstart.core.run import Mode, RunState
from redstart.core.spectrum import Spectrum
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import Search, ripgrep_search, walk_search
from redstart.toolkit.honesty.verdict.baseline import red_cases
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.retrieval.rank import BUDGET, MAX_FILES, RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.view import TreeView

MOST_CHOSEN = 200
"""Maximum files that an audit with a goal covers."""
MANY_FILES = 500
"""Number of files from which ripgrep on a checkout is faster than our own search; both find the same."""


async def retrieve(run: RunState, ports: Ports) -> Context:
    return RETRIEVALS[run.spec.mode](run, ports)


def _ranked(run: RunState, ports: Ports) -> Context:
    """Rank the files as seen from the folder of the suite: tracebacks, IDs and imports are relative to it."""
    suite = run.spec.suite
    view = TreeView(suite, ports.trees.files(run.ground), partial(ports.trees.read, run.ground))
    files = sorted(view.kept)
    cases = red_cases(run, ports.blobs)
    width = 1 + run.taken(Strategy.wider)
    question = RankingQuestion(
        cases=cases,
        goal=run.spec.goal,
        tests=sorted({path for case in cases if (path := view.file_of(case.id))}),
        is_test=is_test_path,
        budget=BUDGET * width,
        files=MAX_FILES * width,
        spectrum=_spectrum(run, ports),
    )
    if len(files) < MANY_FILES or not shutil.which("rg"):
        found = rank(question, files, view.read, walk_search(files, view.read))
    else:
        with ports.trees.checkout(run.ground) as folder:
            found = rank(question, files, view.read, _seen_from(suite.as_shown, ripgrep_search(folder)))
    return found.moved(view.kept)


def _spectrum(run: RunState, ports: Ports) -> Spectrum | None:
    """Return the spectrum of the original code; None once there is a draft, whose lines differ."""
    found = run.now.reproduce
    if found is None or not found.spectrum or run.ground.tree != run.base.tree:
        return None
    return Spectrum.model_validate_json(ports.blobs.get(found.spectrum))


def _chosen(run: RunState, ports: Ports) -> Context:
    """Return the existing files that the audit's plan names; empty if the plan covers all files."""
    wanted = run.now.plan.files if run.now.plan else ()
    files = ports.trees.files(run.ground)
    named = [path for path in files if any(_is_named(path, item) for item in wanted)]
    chunks = (Chunk(path=path, start=1, end=1, score=1.0, source="goal") for path in named[:MOST_CHOSEN])
    return Context(chunks=tuple(chunks), left_out=max(len(named) - MOST_CHOSEN, 0))


def _is_named(path: str, wanted: str) -> bool:
    """Return whether a path is the named file, is inside the named folder, or matches the pattern."""
    wanted = wanted.strip().removeprefix("./").rstrip("/")
    if not wanted or wanted in (".", "*", "**"):
        return False
    return path == wanted or path.startswith(f"{wanted}/") or path.endswith(f"/{wanted}") or fnmatch(path, wanted)


def _seen_from(as_shown: Callable[[str], str], search: Search) -> Search:
    return lambda words: [hit._replace(path=as_shown(hit.path)) for hit in search(words)]


RETRIEVALS: dict[Mode, Callable[[RunState, Ports], Context]] = {
    Mode.fix: _ranked,
    Mode.create: _ranked,
    Mode.improve: _ranked,
    Mode.audit: _chosen,
}
