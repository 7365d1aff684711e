"""Sees which lines the red tests run, by running them once more with some green ones beside them.

Only with pytest, where a plugin of ours can watch it (`inside/redstart_spectrum.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import ValidationError

from redstart.core.report import Case, Outcome
from redstart.core.run import RunSpec, Suite
from redstart.core.shell import Completed, Environment
from redstart.core.spectrum import Spectrum
from redstart.ports.sandbox.port import Session
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites import runner
from redstart.toolkit.suites.execute import environment_of, execution
from redstart.toolkit.suites.request import Request, inside

PLUGIN = "redstart_spectrum"
ASKED = "spectrum_asked.json"
ANSWER = "spectrum.json"
SECONDS = 30
"""After so long it is enough: what was seen until then counts."""
WALL = 120
"""A single test that takes longer, watched, has told nothing."""
MOST_LINES = 20_000


async def watch(
    sandbox: Session, blobs: Blobs, spec: RunSpec, red: Sequence[str], cases: Sequence[Case]
) -> Spectrum | None:
    """The lines that the red tests run on the code as it is; None where nobody could see it.

    `cases` are those of a run of the whole suite. Raises what the sandbox raises.
    """
    environment = environment_of(blobs, spec)
    asked = watching(spec.suite, environment, red, cases)
    if asked is None:
        return None
    short = spec.model_copy(update={"sandbox": spec.sandbox.model_copy(update={"wall": min(spec.sandbox.wall, WALL)})})
    return read_spectrum(await sandbox.run(execution(short, spec.base, environment, asked)))


def watching(suite: Suite, environment: Environment, red: Sequence[str], cases: Sequence[Case]) -> Request | None:
    """What runs the red tests and the green ones of their files under watch; None where that cannot be done.

    Red tests that take long by themselves are not run again.
    """
    ids = _beside(red, cases)
    if suite.runner != "pytest" or suite.junit or not ids:
        return None
    asked = json.dumps({"root": environment.mount, "red": list(red), "seconds": SECONDS, "lines": MOST_LINES})
    request = runner.request(suite, environment, ids)
    return request._replace(
        files_in={**request.files_in, f"{PLUGIN}.py": inside(f"{PLUGIN}.py"), ASKED: asked},
        collect=(*request.collect, ANSWER),
    )


def read_spectrum(completed: Completed) -> Spectrum | None:
    """What the run has seen; None where it left no word that can be read."""
    try:
        return Spectrum.model_validate_json(completed.files.get(ANSWER, ""))
    except ValidationError:
        return None


def _beside(red: Sequence[str], cases: Sequence[Case]) -> list[str]:
    files = set(map(_file, red))
    wanted = set(red)
    reds = [case for case in cases if case.id in wanted]
    if not reds or sum(case.seconds for case in reds) > SECONDS:
        return []
    return [
        case.id for case in cases if case.id in wanted or (case.outcome is Outcome.passed and _file(case.id) in files)
    ]


def _file(id_: str) -> str:
    return id_.partition("::")[0]
