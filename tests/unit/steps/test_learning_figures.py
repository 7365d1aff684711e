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


def of_bench(name: str) -> Any:
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = make_rig(tmp_path / "snapshots")
    yield made
    made.trees.close()


def figures(bench: str, rig: Rig, runs: int) -> dict[str, float]:
    return {item.name: item.value for item in of_bench(bench).measure(rig, runs)}


def test_a_model_that_needs_its_last_reflection_solves_with_it_alone(rig: Rig) -> None:
    measured = figures("reflection", rig, 2)
    assert (measured["reflected_solved"], measured["without_solved"]) == (2, 0)
    assert measured["lines_cut"] > 0


def test_a_patch_that_failed_before_is_avoided_with_memory_alone(rig: Rig) -> None:
    measured = figures("failures", rig, 1)
    assert (measured["avoided"], measured["avoided_without_memory"]) == (1, 0)
