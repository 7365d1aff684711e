"""Which lines of a file run when its functions are called."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from redstart.toolkit.languages.python.change_reader import list_function_lines

TEXT = b'''"""A module."""
LIMIT = 3


class Cart:
    size = 1

    def total(self, prices):
        """Return the total."""
        result: int
        global SEEN
        try:
            for price in prices:
                if price > LIMIT:
                    continue
                SEEN = price
            while True:
                break
        finally:
            result = sum(
                prices
            )
        return result


def outer():
    def inner():
        return 1

    ...
    return inner()
'''
LINES = {13, 14, 16, 20, 23, 28, 31}


def test_statements_of_functions_are_listed():
    assert list_function_lines(TEXT) == LINES
    assert list_function_lines(b"def broken(:\n") == frozenset()


def test_interpreter_reports_each_of_these_lines():
    ran: set[int] = set()

    def trace(frame: FrameType, event: str, _value: Any) -> Any:
        if frame.f_code.co_filename == "cart.py" and event == "line":
            ran.add(frame.f_lineno)
        return trace

    names: dict[str, Any] = {}
    exec(compile(TEXT, "cart.py", "exec"), names)
    former = sys.gettrace()
    sys.settrace(trace)
    try:
        names["Cart"]().total([1, 5])
        names["outer"]()
    finally:
        sys.settrace(former)
    assert LINES - ran == set()
