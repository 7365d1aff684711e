"""The bench of the learning curve: each task fails without its fix, and no key fact is in the code."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from redstart.core.lesson import Provenance
from redstart.toolkit.learning.lesson_selector import list_refusal_reasons

BENCH = Path(__file__).parents[3] / "bench"


def import_bench_module(name: str) -> Any:
    """Import a module of `bench/`, which is not a package and imports its neighbors by their bare names."""
    if str(BENCH) not in sys.path:
        sys.path.append(str(BENCH))
    return importlib.import_module(name)


families = import_bench_module("learning.families")
EVERY = [families.read_family(name) for name in families.FAMILIES]
VERIFIED = Provenance(repo="shop", commit="c", run="r", model="m", outcome="verified")


def find_failing_tests(code: str, tests: str) -> list[str]:
    """Run the tests in this process (all are ours, and short) and return the names of those that fail."""
    space: dict[str, Any] = {"__name__": "example"}
    exec(compile(code + tests.partition("\n")[2], "example", "exec"), space)
    failing: list[str] = []
    for name, test in list(space.items()):
        if name.startswith("test_") and isinstance(test, FunctionType):
            try:
                test()
            except Exception:
                failing.append(name)
    return failing


@pytest.mark.parametrize("family", EVERY, ids=lambda family: family.name)
def test_each_task_fails_as_shown_and_passes_with_its_fix(family):
    assert len({example.name for example in family.examples}) == 10
    for example in family.examples:
        assert len(find_failing_tests(example.before, example.shown)) == 1, example.name
        assert find_failing_tests(example.after, example.shown) == [], example.name
        assert find_failing_tests(example.after, example.hidden) == [], example.name
        assert example.shown.count("def test_") >= 2, example.name


def test_key_fact_is_an_accepted_lesson_and_appears_in_no_code():
    texts = [
        text
        for family in EVERY
        for example in family.examples
        for text in (example.before, example.after, example.shown)
    ]
    assert len({family.advice for family in EVERY}) == len(EVERY) == 12
    for family in EVERY:
        assert list_refusal_reasons(family.when, family.advice, VERIFIED, lambda _: False) == ()
        assert not [text for text in texts if family.advice in text]
