"""A patch that changes the active plugins is not accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.run import Limits, Result, RunState
from redstart.core.shell import Completed, Execution
from redstart.engines.drive import drive
from redstart.engines.inline import inline
from support import rig as play
from support.rig import CODE, Rig, computed_suite, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def fix_with_plugins(rig: Rig, after: str) -> RunState:
    suite = computed_suite(rig.trees)

    def run(execution: Execution) -> Completed:
        done = suite(execution)
        patched = rig.trees.read(execution.snapshot, CODE) != play.BUGGY.encode()
        names = after if patched else "cov\nmain\nmain\n"
        return done.model_copy(update={"files": {**done.files, "plugins.txt": names}})

    rig.with_suite(run)
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> RunState:
        run_id = await rig.begin(limits=Limits(attempts=1))
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), inline)).state

    return asyncio.run(go())


def test_the_same_plugins_in_whatever_order(rig: Rig) -> None:
    assert fix_with_plugins(rig, "main\ncov\n").result is Result.verified


@pytest.mark.parametrize(("after", "named"), [("cov\nmain\nhelper\n", "helper"), ("main\n", "cov")])
def test_one_more_or_one_less(rig: Rig, after: str, named: str) -> None:
    state = fix_with_plugins(rig, after)
    assert state.result is Result.unsolved
    assert state.now.test is not None
    assert state.now.test.verdict.unexplained == f"other plugins took part than at the baseline: {named}"
