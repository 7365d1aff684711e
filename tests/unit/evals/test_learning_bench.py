"""The bench of the learning curve: each task fails without its fix, and no key fact is in the code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from redstart.core.lesson import Provenance
from redstart.toolkit.learning.advisor import refusals

BENCH = Path(__file__).parents[3] / "bench"


def of_bench(name: str) -> Any:
    """Import a module of `bench/`, which is not a package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


families = of_bench("learning.families")
EVERY = [families.read_family(name) for name in families.FAMILIES]
VERIFIED = Provenance(repo="shop", commit="c", run="r", model="m", outcome="verified")


def red(code: str, tests: str) -> list[str]:
    """Run the tests in this process (all are ours, and short) and return the names of those that fail."""
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(code + tests.partition("\n")[2], "example", "exec"), space)
    found: list[str] = []
    for name, test in list(space.items()):
        if name.startswith("test_") and isinstance(test, FunctionType):
            try:
                test()
            except Exception:
                found.append(name)
    return found


@pytest.mark.parametrize("family", EVERY, ids=lambda family: family.name)
def test_each_task_is_red_as_it_is_shown_and_green_with_its_fix_by_hidden_tests_too(family):
    assert len({example.name for example in family.examples}) == 10
    for example in family.examples:
        assert len(red(example.before, example.shown)) == 1, example.name
        assert red(example.after, example.shown) == [], example.name
        assert red(example.after, example.hidden) == [], example.name
        assert example.shown.count("def test_") >= 2, example.name


def test_a_key_fact_is_a_lesson_that_is_taken_and_stands_in_no_code():
    texts = [
        text
        for family in EVERY
        for example in family.examples
        for text in (example.before, example.after, example.shown)
    ]
    assert len({family.advice for family in EVERY}) == len(EVERY) == 12
    for family in EVERY:
        assert refusals(family.when, family.advice, VERIFIED, lambda _: False) == ()
        assert not [text for text in texts if family.advice in text]
