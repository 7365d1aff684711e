"""Short forms of `bench/reflection.py` and `bench/failures.py`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.rig import Rig, make_rig

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[3] / "bench"


def import_bench_module(name: str) -> Any:
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    test_rig = make_rig(tmp_path / "snapshots")
    yield test_rig
    test_rig.trees.close()


def measure_figures(bench: str, rig: Rig, runs: int) -> dict[str, float]:
    return {item.name: item.value for item in import_bench_module(bench).measure(rig, runs)}


def test_model_that_needs_its_last_reflection_solves_only_with_it(rig: Rig) -> None:
    results = measure_figures("reflection", rig, 2)
    assert (results["reflected_solved"], results["without_solved"]) == (2, 0)
    assert results["lines_cut"] > 0


def test_earlier_failed_patch_is_avoided_only_with_memory(rig: Rig) -> None:
    results = measure_figures("failures", rig, 1)
    assert (results["avoided"], results["avoided_without_memory"]) == (1, 0)
