"""A sample of a long list of cases: some run always, all of them with `--soak`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def sample_parameters(values: Sequence[Any], count: int) -> list[Any]:
    """Return the values as parameters; all but `count` of them, evenly spaced, run only with `--soak`."""
    step = max(len(values) // count, 1)
    selected = set(range(0, step * count, step))
    return [value if number in selected else _mark_soak(value) for number, value in enumerate(values)]


def _mark_soak(value: Any) -> Any:
    is_param = isinstance(value, type(pytest.param()))
    values, marks, name = (value.values, value.marks, value.id) if is_param else ((value,), (), None)
    return pytest.param(*values, marks=[*marks, pytest.mark.soak], id=name)
