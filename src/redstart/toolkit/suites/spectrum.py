"""Sees which lines the red tests run, by running them once more with some green ones beside them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from redstart.core.report import Case, Outcome
from redstart.core.run import RunSpec, Suite
from redstart.core.shell import Completed, Environment
from redstart.core.spectrum import Spectrum
from redstart.ports.sandbox.port import SandboxSession
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites.execute import environment_of, execution
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.runner import runner_of

ANSWER = "spectrum.json"
"""The name under which what was seen is collected."""
SECONDS = 30
"""After so long it is enough: what was seen until then counts."""
WALL = 120
"""A single test that takes longer, watched, has told nothing."""


async def watch(
    sandbox: SandboxSession, blobs: Blobs, spec: RunSpec, red: Sequence[str], cases: Sequence[Case]
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


def watching(suite: Suite, environment: Environment, red: Sequence[str], cases: Sequence[Case]) -> SuiteRequest | None:
    """What runs the red tests and the green ones of their files under watch; None where that cannot be done.

    Red tests that take long by themselves are not run again.
    """
    ids, started = _beside(red, cases), runner_of(suite)
    return started.watched(suite, environment, red, ids) if started and ids else None


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
