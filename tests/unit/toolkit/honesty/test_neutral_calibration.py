"""When a directly called test fails as it did at the baseline, and which file an ID names."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.honesty.neutral_surroundings import CallResult, drop_test_variables, select_unused_variables
from redstart.toolkit.languages.python.neutral_addresses import CaseAddress, locate_test
from redstart.toolkit.languages.python.neutral_calibration import is_baseline_failure

FILE = "tests/test_slug.py"
TEXT = "from slug import slug\n\n\ndef test_runs():\n    assert slug(\n        'a'\n    ) == 'b'\n    slug('c')\n"
PYTEST = """
    def test_runs():
>       assert slug('a') == 'b'

tests/test_slug.py:5:
_ _ _ _ _ _ _ _

    def slug(title):
>       raise ValueError(title)
E       ValueError: a

slug.py:2: ValueError
"""
UNITTEST = """Traceback (most recent call last):
  File "/repo/tests/test_slug.py", line 5, in test_runs
    assert slug('a') == 'b'
  File "/repo/slug.py", line 2, in slug
    raise ValueError(title)
ValueError: a
"""


@pytest.mark.parametrize("detail", [PYTEST, UNITTEST], ids=["pytest", "unittest"])
@pytest.mark.parametrize(
    ("kind", "line", "expected"),
    [
        ("ValueError", 5, True),
        ("ValueError", 7, True),
        ("ValueError", 8, False),
        ("ValueError", 0, False),
        ("TypeError", 5, False),
    ],
)
def test_failures_match_by_type_and_statement(detail: str, kind: str, line: int, expected: bool) -> None:
    case = Case(id=f"{FILE}::test_runs", outcome=Outcome.failed, message="ValueError: a", detail=detail)
    assert is_baseline_failure(case, CallResult(outcome="failed", type=kind, line=line), FILE, TEXT) is expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("tests/test_a.py::test_b", ("tests/test_a.py", ("test_b",), "")),
        ("tests/test_a.py::A::test_b[x::y[0]]", ("tests/test_a.py", ("A", "test_b"), "x::y[0]")),
        ("tests/test_a.py", ("tests/test_a.py", (), "")),
        ("tests.test_a.A.test_b", ("tests/test_a.py", ("A", "test_b"), "")),
        ("test_a.A.test_b", ("tests/test_a.py", ("A", "test_b"), "")),
        ("elsewhere.A.test_b", ("", (), "")),
    ],
)
def test_test_is_found_by_its_id(test: str, expected: tuple[str, tuple[str, ...], str]) -> None:
    assert locate_test(test, {"tests/test_a.py", "a.py"}) == CaseAddress(test, *expected)


def test_variables_of_a_test_run_are_removed() -> None:
    variables = {"PYTEST_ADDOPTS": "-x", "CI": "1", "TOX_ENV_NAME": "py", "DATABASE": "shop", "CITY": "Ulm"}
    assert drop_test_variables(variables) == {"DATABASE": "shop", "CITY": "Ulm"}


def test_variable_read_by_the_project_keeps_its_value() -> None:
    variables = select_unused_variables(["port = os.environ.get('PORT', 80)"])
    assert "PORT" not in variables
    assert variables["APP_ENV"] == "production"
