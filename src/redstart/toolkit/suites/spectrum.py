"""Records which lines the failing tests run, by running them again together with some passing tests."""

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
"""The name of the collected result file."""
SECONDS = 30
"""The time limit for tracing. What was recorded until then counts."""
WALL = 120
"""A single test that takes longer under tracing reveals nothing."""


async def watch(
    sandbox: SandboxSession, blobs: Blobs, spec: RunSpec, red: Sequence[str], cases: Sequence[Case]
) -> Spectrum | None:
    """Record the lines that the failing tests run on the current code. None if they cannot be recorded.

    `cases` come from a run of the whole suite. Raises what the sandbox raises.
    """
    environment = environment_of(blobs, spec)
    asked = watching(spec.suite, environment, red, cases)
    if asked is None:
        return None
    short = spec.model_copy(update={"sandbox": spec.sandbox.model_copy(update={"wall": min(spec.sandbox.wall, WALL)})})
    return read_spectrum(await sandbox.run(execution(short, spec.base, environment, asked)))


def watching(suite: Suite, environment: Environment, red: Sequence[str], cases: Sequence[Case]) -> SuiteRequest | None:
    """Build the request that traces the failing tests and the passing tests of their files. None if that is impossible.

    Failing tests that take long by themselves are not run again.
    """
    ids, started = _beside(red, cases), runner_of(suite)
    return started.watched(suite, environment, red, ids) if started and ids else None


def read_spectrum(completed: Completed) -> Spectrum | None:
    """Read what the run recorded. None if it left nothing readable."""
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
