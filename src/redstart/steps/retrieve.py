"""Finds the code that matters for what is red."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

from redstart.core.context import Context
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.retrieval.lexical import Search, ripgrep_search, walk_search
from redstart.toolkit.retrieval.rank import Question
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.view import View

MANY_FILES = 500
"""From here on ripgrep on a checkout is faster than our own walk; both find the same."""


async def retrieve(run: RunState, ports: Ports) -> Context:
    """Looks at the tree from the folder that the suite runs in: tracebacks, ids and imports are meant from there."""
    suite = run.spec.suite
    view = View(suite, ports.trees.files(run.ground), partial(ports.trees.read, run.ground))
    files = sorted(view.kept)
    cases = red_cases(run, ports.blobs)
    question = Question(
        cases=cases,
        goal=run.spec.goal,
        tests=sorted({path for case in cases if (path := view.file_of(case.id))}),
        is_test=is_test_path,
    )
    if len(files) < MANY_FILES or not shutil.which("rg"):
        found = rank(question, files, view.read, walk_search(files, view.read))
    else:
        with ports.trees.checkout(run.ground) as folder:
            found = rank(question, files, view.read, _seen_from(suite.as_shown, ripgrep_search(folder)))
    chunks = tuple(chunk.model_copy(update={"path": view.kept[chunk.path]}) for chunk in found.chunks)
    return found.model_copy(update={"chunks": chunks})


def _seen_from(as_shown: Callable[[str], str], search: Search) -> Search:
    return lambda words: [hit._replace(path=as_shown(hit.path)) for hit in search(words)]
