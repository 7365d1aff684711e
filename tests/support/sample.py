"""A sample of a long list of cases: some run always, all of them with `--soak`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def short_form(values: Sequence[Any], count: int) -> list[Any]:
    """Return the values as parameters; all but `count` of them, evenly spaced, run only with `--soak`."""
    step = max(len(values) // count, 1)
    kept = set(range(0, step * count, step))
    return [value if number in kept else _soaked(value) for number, value in enumerate(values)]


def _soaked(value: Any) -> Any:
    known = isinstance(value, type(pytest.param()))
    values, marks, name = (value.values, value.marks, value.id) if known else ((value,), (), None)
    return pytest.param(*values, marks=[*marks, pytest.mark.soak], id=name)
