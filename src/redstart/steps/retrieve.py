"""Finds the code that matters for what is red."""

from __future__ import annotations

import shutil
from functools import lru_cache, partial

from redstart.core.context import Context
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.retrieval.lexical import ripgrep_search, walk_search
from redstart.toolkit.retrieval.rank import Question
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.suites.detect import is_test_path

MANY_FILES = 500
"""From here on ripgrep on a checkout is faster than our own walk; both find the same."""


async def retrieve(run: RunState, ports: Ports) -> Context:
    files = ports.trees.files(run.ground)
    read = lru_cache(maxsize=None)(partial(ports.trees.read, run.ground))
    cases = red_cases(run, ports.blobs)
    question = Question(
        cases=cases,
        goal=run.spec.goal,
        tests=sorted({path for case in cases if (path := _test_file(case.id, files))}),
        is_test=is_test_path,
    )
    if len(files) < MANY_FILES or not shutil.which("rg"):
        return rank(question, files, read, walk_search(files, read))
    with ports.trees.checkout(run.ground) as folder:
        return rank(question, files, read, ripgrep_search(folder))


def _test_file(id_: str, files: list[str]) -> str:
    """The file of a test id: `a/b.py::Class::test`, `a/b.py` or `a.b.Class.test`."""
    path = id_.split("::", maxsplit=1)[0]
    if path in files:
        return path
    words = id_.split(".")
    dotted = ("/".join(words[:count]) + ".py" for count in range(len(words), 0, -1))
    return next((path for path in dotted if path in files), "")
