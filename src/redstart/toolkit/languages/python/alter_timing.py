"""Slow down tests that limit how long something takes: they must then fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind
from redstart.toolkit.languages.python.statement_offsets import TestFile
from redstart.toolkit.languages.python.syntax import Function

LONGEST = 3.0
"""The longest pause added to a test, in seconds; tests with a larger time limit are left alone."""
SLOWED = "it is made to take longer than it allows"


def slow_down(file: TestFile, test: Function) -> Iterator[Alteration]:
    """Insert a pause after each recorded start time if the test limits the time since then."""
    for statement in test.body:
        match statement:
            case ast.Assert(test=ast.Compare(left=elapsed, ops=[ast.Lt() | ast.LtE()], comparators=[bound])):
                seconds, began = _number(bound), _find_start(test, elapsed)
            case _:
                continue
        if began is None or seconds is None or not 0 < 2 * seconds + 0.2 <= LONGEST:
            continue
        later_statements = [candidate for candidate in test.body if candidate.lineno > began.lineno]
        edit = file.insert_before(later_statements[0], f'__import__("time").sleep({2 * seconds + 0.2})')
        yield Alteration(AlterationKind.other, statement.lineno, *edit, SLOWED, always=True)


def _number(node: ast.expr) -> float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _find_start(test: Function, elapsed: ast.expr) -> ast.Assign | None:
    """Find the statement that records the start: `began` in `now() - began`, also if the difference has a name."""
    if isinstance(elapsed, ast.Name) and (assignment := _find_assignment(test, elapsed.id)) is not None:
        elapsed = assignment.value
    match elapsed:
        case ast.BinOp(op=ast.Sub(), right=ast.Name(id=name)):
            assignment = _find_assignment(test, name)
        case _:
            return None
    return assignment if assignment is not None and isinstance(assignment.value, ast.Call) else None


def _find_assignment(test: Function, name: str) -> ast.Assign | None:
    """Find the only statement that assigns this name; None if there is not exactly one."""
    assignments = [
        statement
        for statement in test.body
        if isinstance(statement, ast.Assign) and any(getattr(target, "id", "") == name for target in statement.targets)
    ]
    return assignments[0] if len(assignments) == 1 else None
