"""Check whether the tests of a new program detect small changes that break it."""

from __future__ import annotations

from functools import partial

from redstart.core.change import Snapshot
from redstart.core.report import Mutants
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.mutant_sample import FEWEST, ProgramFile, is_decided, sample_mutants, summarize_mutants
from redstart.toolkit.honesty.verdict.baseline import load_targets
from redstart.toolkit.honesty.verdict.verdict import find_passing_targets
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import find_protection
from redstart.toolkit.suites.execute import run_suite, warm_session

SHORTEST, TIMEOUT_FACTOR = 20.0, 10.0
"""Minimum time limit in seconds for the tests of a changed program, and its factor over the time of the original."""


async def count_mutants(run: RunState, ports: Ports, snapshot: Snapshot, seconds: float) -> Mutants | None:
    """Count the small changes to a new program that its tests detect, until the result is clear."""
    target_ids = load_targets(run, ports.blobs)
    mutants = sample_mutants(_read_program_files(run, ports, snapshot), f"{run.spec.seed}/{snapshot.tree}")
    brief = run.spec.sandbox.model_copy(
        update={"wall": min(max(SHORTEST, TIMEOUT_FACTOR * seconds), run.spec.sandbox.wall)}
    )
    spec = run.spec.model_copy(update={"sandbox": brief})
    detected: list[bool] = []
    async with warm_session(ports.sandbox, ports.blobs, spec) as session:
        for number, item in enumerate(mutants, 1):
            if is_decided(len(mutants), detected) or len(mutants) < FEWEST:
                break
            mutated = ports.trees.write(
                snapshot, {item.path: item.apply_to(ports.trees.read(snapshot, item.path) or b"")}
            )
            sign_case = partial(sign, is_source=lambda _: False)
            ports.announce(f"mutant {number} of {len(mutants)}", tests=len(target_ids), seconds=seconds)
            suite_run = await run_suite(session, ports.blobs, spec, mutated, sign=sign_case, ids=target_ids)
            detected.append(find_passing_targets(target_ids, suite_run.cases) != set(target_ids))
    return summarize_mutants(len(mutants), detected, mutants)


def _read_program_files(run: RunState, ports: Ports, snapshot: Snapshot) -> dict[str, ProgramFile]:
    """Return the files of the new program: what the run has written, without tests."""
    trees, base = ports.trees, run.spec.base
    changed = (change.path for change in trees.list_changes(base, snapshot))
    paths = (path for path in changed if not (find_protection(path, run.spec.protect) or is_test_path(path)))
    return {path: ProgramFile(trees.read(base, path) or b"", trees.read(snapshot, path) or b"") for path in paths}
