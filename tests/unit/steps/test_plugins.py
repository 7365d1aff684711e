"""A patch that changes the active plugins is not accepted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from redstart.core.run import Limits, Result, RunState
from redstart.core.shell import Completed, Execution
from redstart.engines.inline import run_inline
from redstart.engines.step_driver import drive
from support import rig as play
from support.rig import CODE, Rig, create_computed_suite, make_rig

pytestmark = pytest.mark.slow


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def fix_with_plugins(rig: Rig, names_after: str) -> RunState:
    suite = create_computed_suite(rig.trees)

    def run(execution: Execution) -> Completed:
        completed = suite(execution)
        patched = rig.trees.read(execution.snapshot, CODE) != play.BUGGY.encode()
        names = names_after if patched else "cov\nmain\nmain\n"
        return completed.model_copy(update={"files": {**completed.files, "plugins.txt": names}})

    rig.with_suite(run)
    rig.with_model([play.RIGHT, play.CARD])

    async def go() -> RunState:
        run_id = await rig.begin(limits=Limits(attempts=1))
        return (await drive(rig.adapters, await rig.adapters.store.claim(run_id), run_inline)).state

    return asyncio.run(go())


def test_plugin_order_does_not_matter(rig: Rig) -> None:
    assert fix_with_plugins(rig, "main\ncov\n").result is Result.verified


@pytest.mark.parametrize(("names_after", "plugin"), [("cov\nmain\nhelper\n", "helper"), ("main\n", "cov")])
def test_added_or_removed_plugin_prevents_acceptance(rig: Rig, names_after: str, plugin: str) -> None:
    state = fix_with_plugins(rig, names_after)
    assert state.result is Result.unsolved
    assert state.now.test is not None
    assert state.now.test.verdict.unexplained == f"other plugins took part than at the baseline: {plugin}"
