"""Check whether a test that is called directly fails on the original code as it does in a test run."""

from __future__ import annotations

import ast

from redstart.core.report import Case
from redstart.toolkit.base.tracebacks import parse_tracebacks, strip_colors
from redstart.toolkit.honesty.neutral_surroundings import CallResult
from redstart.toolkit.suites.reading.exceptions import list_exceptions


def find_reported_line(case: Case, file: str) -> int:
    """Find the last line of the test's file that the runner's output names; 0 if it names none."""
    frames = [frame for traceback in parse_tracebacks(strip_colors(case.detail)) for frame in traceback.mentions]
    numbers = [frame.number for frame in frames if f"/{frame.path}".endswith(f"/{file}") and not frame.is_quoted]
    return numbers[-1] if numbers else 0


def find_reported_type(case: Case) -> str:
    """Find the exception's class name without its module; empty if the runner's output names none."""
    exceptions = list_exceptions(case)
    return exceptions[-1].type if exceptions else ""


def is_baseline_failure(case: Case, result: CallResult, file: str, text: str) -> bool:
    """Whether a result is the baseline failure: the same exception at the same statement of the test's file.

    `text` is the content of that file.
    """
    if result.outcome != "failed" or find_reported_type(case) != result.type:
        return False
    line = find_reported_line(case, file)
    return not line or line == result.line or _is_same_statement(text, line, result.line)


def _is_same_statement(text: str, first: int, second: int) -> bool:
    """Whether both lines belong to one simple statement: runners differ in which line of it they name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    simple = (ast.Assert, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
    return any(
        isinstance(node, simple) and all(node.lineno <= line <= (node.end_lineno or 0) for line in (first, second))
        for node in ast.walk(tree)
    )
