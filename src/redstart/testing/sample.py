"""The short form of a long list of cases: some in every run of the tests, all of them with `--soak`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest


def short_form(values: Sequence[Any], count: int, soak: pytest.MarkDecorator) -> list[Any]:
    """The values as parameters, of which `count`, evenly chosen, lack the mark that leaves the others to the soak."""
    step = max(len(values) // count, 1)
    kept = set(range(0, step * count, step))
    return [value if number in kept else _marked(value, soak) for number, value in enumerate(values)]


def _marked(value: Any, soak: pytest.MarkDecorator) -> Any:
    known = isinstance(value, type(pytest.param()))
    values, marks, name = (value.values, value.marks, value.id) if known else ((value,), (), None)
    return pytest.param(*values, marks=[*marks, soak], id=name)
