"""Whether a test that is called plainly fails on the original code as it does in a test run."""

from __future__ import annotations

import ast
import re

from redstart.core.report import Case
from redstart.toolkit.honesty.neutral_surroundings import CallResult
from redstart.toolkit.suites.raised import chain

_PYTEST_LINE = re.compile(r"^(?P<path>[^\s:>][^:\n]*\.py):(?P<line>\d+):", re.MULTILINE)
_PYTHON_LINE = re.compile(r'^\s*File "(?P<path>[^"\n]+)", line (?P<line>\d+)', re.MULTILINE)


def reported_line(case: Case, file: str) -> int:
    """The last line of the test's file that the runner's text names; 0 where it names none."""
    matches = [*_PYTEST_LINE.finditer(case.detail)] or [*_PYTHON_LINE.finditer(case.detail)]
    lines = [int(match["line"]) for match in matches if f"/{match['path']}".endswith(f"/{file}")]
    return lines[-1] if lines else 0


def reported_type(case: Case) -> str:
    """The class of the exception, without its module; empty where the runner's text names none."""
    raised = chain(case)
    return raised[-1].type if raised else ""


def fails_alike(case: Case, result: CallResult, file: str, text: str) -> bool:
    """Whether this is the failure of the baseline: the same exception at the same statement of the test's file.

    `text` is that of the file.
    """
    if result.outcome != "failed" or reported_type(case) != result.type:
        return False
    line = reported_line(case, file)
    return not line or line == result.line or _same_statement(text, line, result.line)


def _same_statement(text: str, first: int, second: int) -> bool:
    """Whether both lines belong to one simple statement: runners differ in which of its lines they name."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    simple = (ast.Assert, ast.Expr, ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Raise, ast.Delete)
    return any(
        isinstance(node, simple) and all(node.lineno <= line <= (node.end_lineno or 0) for line in (first, second))
        for node in ast.walk(tree)
    )
