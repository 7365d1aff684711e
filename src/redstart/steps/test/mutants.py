"""Check whether the tests of a new program detect small changes that break it."""

from __future__ import annotations

from functools import partial

from redstart.core.change import Snapshot
from redstart.core.report import Mutants
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.mutants import FEWEST, ProgramFile, counted, is_decided, sample
from redstart.toolkit.honesty.verdict.baseline import targets
from redstart.toolkit.honesty.verdict.verdict import green_among
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.signature import sign
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.suites.execute import run_suite, warm_session

SHORTEST, LONGER = 20.0, 10.0
"""Minimum time limit in seconds for the tests of a changed program, and its factor over the time of the original."""


async def count_mutants(run: RunState, ports: Ports, made: Snapshot, took: float) -> Mutants | None:
    """Count the small changes to a new program that its tests detect, until the result is clear."""
    wanted = targets(run, ports.blobs)
    chosen = sample(_source(run, ports, made), f"{run.spec.seed}/{made.tree}")
    brief = run.spec.sandbox.model_copy(update={"wall": min(max(SHORTEST, LONGER * took), run.spec.sandbox.wall)})
    spec = run.spec.model_copy(update={"sandbox": brief})
    noticed: list[bool] = []
    async with warm_session(ports.sandbox, ports.blobs, spec) as session:
        for number, item in enumerate(chosen, 1):
            if is_decided(len(chosen), noticed) or len(chosen) < FEWEST:
                break
            broken = ports.trees.write(made, {item.path: item.of(ports.trees.read(made, item.path) or b"")})
            unsigned = partial(sign, is_source=lambda _: False)
            ports.announce(f"mutant {number} of {len(chosen)}", tests=len(wanted), seconds=took)
            done = await run_suite(session, ports.blobs, spec, broken, sign=unsigned, ids=wanted)
            noticed.append(green_among(wanted, done.cases) != set(wanted))
    return counted(len(chosen), noticed, chosen)


def _source(run: RunState, ports: Ports, made: Snapshot) -> dict[str, ProgramFile]:
    """Return the files of the new program: what the run has written, without tests."""
    trees, base = ports.trees, run.spec.base
    changed = (change.path for change in trees.changes(base, made))
    mine = (path for path in changed if not (protected(path, run.spec.protect) or is_test_path(path)))
    return {path: ProgramFile(trees.read(base, path) or b"", trees.read(made, path) or b"") for path in mine}
