"""What a failing test printed, read from the output of Vitest."""

from __future__ import annotations

from redstart.core.report import CAPTURED_LIMIT, Outcome
from redstart.testing.states import make_case
from redstart.toolkit.languages.node.printed_output import add_printed_output

OUTPUT = """
 RUN  v3.2.4 /project

stdout | test/cart.test.js > cart > adds up
hello
second

third

stderr | test/cart.test.js > cart > adds up
bad

stdout | test/cart.test.js > cart > passes
not asked

 ❯ test/cart.test.js (2 tests | 1 failed) 493ms
   × cart > adds up 490ms

 FAIL  test/cart.test.js > cart > adds up
AssertionError: expected 1 to be 2
"""
RED = "test/cart.test.js::cart > adds up"


def test_failing_test_has_its_own_output_and_no_other_has_any():
    green = make_case("test/cart.test.js::cart > passes", Outcome.passed)
    other = make_case("test/other.test.js::cart > adds up")
    cases = add_printed_output([make_case(RED), green, other], OUTPUT)
    assert (cases[0].stdout, cases[0].stderr) == ("hello\nsecond\n\nthird", "bad")
    assert cases[1:] == [green, other]


def test_output_is_clipped():
    (case,) = add_printed_output([make_case(RED)], f"stdout | {RED.replace('::', ' > ')}\nstart{'x' * 9000}end\n")
    assert (case.stdout[:5], case.stdout[-3:]) == ("start", "end")
    assert len(case.stdout.encode()) <= CAPTURED_LIMIT
