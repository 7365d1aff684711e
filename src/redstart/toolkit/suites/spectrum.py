"""Record which lines the failing tests run, by running them again together with some passing tests."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from redstart.core.report import Case, Outcome
from redstart.core.run import RunSpec, Suite
from redstart.core.shell import Completed, Environment
from redstart.core.spectrum import Spectrum
from redstart.ports.sandbox.port import SandboxSession
from redstart.ports.store.port.blobs import Blobs
from redstart.toolkit.suites.execute import build_execution, load_environment
from redstart.toolkit.suites.request import SuiteRequest
from redstart.toolkit.suites.runner import get_suite_runner

ANSWER = "spectrum.json"
"""The name of the collected result file."""
SECONDS = 30
"""The time limit for tracing. What was recorded until then counts."""
WALL_SECONDS = 120
"""A single test that takes longer under tracing reveals nothing."""


async def watch(
    sandbox: SandboxSession, blobs: Blobs, spec: RunSpec, failing_ids: Sequence[str], cases: Sequence[Case]
) -> Spectrum | None:
    """Record the lines that the failing tests run on the current code. None if they cannot be recorded.

    `cases` come from a run of the whole suite. Raises what the sandbox raises.
    """
    environment = load_environment(blobs, spec)
    request = build_spectrum_request(spec.suite, environment, failing_ids, cases)
    if request is None:
        return None
    limited_spec = spec.model_copy(
        update={"sandbox": spec.sandbox.model_copy(update={"wall": min(spec.sandbox.wall, WALL_SECONDS)})}
    )
    return read_spectrum(await sandbox.run(build_execution(limited_spec, spec.base, environment, request)))


def build_spectrum_request(
    suite: Suite, environment: Environment, failing_ids: Sequence[str], cases: Sequence[Case]
) -> SuiteRequest | None:
    """Build the request that traces the failing tests and the passing tests of their files. None if that is impossible.

    Failing tests that take long by themselves are not run again.
    """
    ids, runner = _select_traced_tests(failing_ids, cases), get_suite_runner(suite)
    return runner.build_coverage_request(suite, environment, failing_ids, ids) if runner and ids else None


def build_line_request(suite: Suite, environment: Environment, ids: Sequence[str]) -> SuiteRequest | None:
    """Build the request that records every line which these passing tests run. None if that is impossible."""
    runner = get_suite_runner(suite)
    return runner.build_coverage_request(suite, environment, (), ids) if runner and ids else None


def read_spectrum(completed: Completed) -> Spectrum | None:
    """Read what the run recorded. None if it left nothing readable."""
    try:
        return Spectrum.model_validate_json(completed.files.get(ANSWER, ""))
    except ValidationError:
        return None


def _select_traced_tests(failing_ids: Sequence[str], cases: Sequence[Case]) -> list[str]:
    files = set(map(_get_file, failing_ids))
    failing_set = set(failing_ids)
    failing_cases = [case for case in cases if case.id in failing_set]
    if not failing_cases or sum(case.seconds for case in failing_cases) > SECONDS:
        return []
    return [
        case.id
        for case in cases
        if case.id in failing_set or (case.outcome is Outcome.passed and _get_file(case.id) in files)
    ]


def _get_file(id_: str) -> str:
    return id_.partition("::")[0]
