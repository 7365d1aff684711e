"""Failures as our reporters for node's runner, Jest, Vitest and Mocha record them."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

TEST = "test/cart.test.js::Cart > adds"
AT_TEST = (
    "\n    at TestContext.<anonymous> (test/cart.test.js:7:10)\n    at Test.run (node:internal/test_runner/test:632:9)"
)


def signed(message: str, detail: str) -> Signature:
    case = Case(id=TEST, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=["/work/repo"])


def strictly_equal(got: str) -> Signature:
    said = "Expected values to be strictly equal:"
    return signed(
        f"AssertionError: {said}\n{got} !== 4", f"AssertionError [ERR_ASSERTION]: {said}\n\n{got} !== 4\n{AT_TEST}"
    )


def jest(got: str) -> Signature:
    said = "expect(received).toBe(expected) // Object.is equality"
    return signed(
        f"Error: {said}\nExpected: 4\nReceived: {got}",
        f"Error: {said}\n\nExpected: 4\nReceived: {got}\n    at Object.toBe (test/cart.test.js:5:30)",
    )


def vitest(got: str) -> Signature:
    said = f"AssertionError: expected {got} to be 4 // Object.is equality"
    return signed(said, f"{said}\n    at /work/repo/test/cart.test.js:5:30")


def mocha(got: str) -> Signature:
    said = f"AssertionError: expected {got} to equal 4"
    return signed(said, f"{said}\n    at Context.<anonymous> (test/cart.test.js:5:30)")


@pytest.mark.parametrize("runner", [strictly_equal, jest, vitest, mocha])
def test_a_wrong_value_is_named_by_test_and_value(runner: object) -> None:
    assert callable(runner)
    one, again, other = runner("3"), runner("3"), runner("5")
    assert one.frame == TEST
    assert one.key == again.key != other.key
    assert one.family == other.family


def test_a_time_that_was_measured_makes_no_difference() -> None:
    said = "AssertionError: expected {} to be below 100"
    one, other = (signed(said.format(took), f"{said.format(took)}{AT_TEST}") for took in (153, 121))
    assert one.key == other.key


@pytest.mark.parametrize(
    "place", ["file:///work/repo/src/cart.js:9:3", "/work/repo/src/cart.js:77:1", "src/cart.js:2:2"]
)
def test_an_error_of_the_source_is_named_by_its_function(place: str) -> None:
    said = "TypeError: Cannot read properties of undefined (reading 'price')"
    found = signed(said, f"{said}\n    at Object.total [as sum] ({place}){AT_TEST}")
    assert (found.exception, found.frame) == ("TypeError", "src/cart.js:total")
    assert found.key != signed(said.replace("price", "name"), f"{said}\n    at total ({place}){AT_TEST}").key


def test_what_is_installed_is_no_source() -> None:
    said = "TypeError: x is not a function"
    detail = f"{said}\n    at deep (node_modules/lib/src/a.js:3:4)\n    at Cart.add (src/cart.js:3:4){AT_TEST}"
    assert signed(said, detail).frame == "src/cart.js:Cart.add"


def test_a_code_beside_the_name_of_an_error_makes_no_difference() -> None:
    said = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
    found = signed(said, f"{said}\n\n3 !== 4\n{AT_TEST}")
    assert (found.exception, found.message) == ("AssertionError", "Expected values to be strictly equal: 3 !== 4")
    assert found.key == strictly_equal("3").key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\n\nnull !== 'cat, bat'\n", "\n+ actual - expected\n\n+ null\n- 'cat, bat'\n"),
        (
            "\n+ actual - expected\n\n  [\n+   'a',\n+   'b'\n-   'b',\n-   'a'\n  ]\n",
            "\n+ actual - expected\n\n  [\n+   'a',\n    'b',\n-   'a'\n  ]\n",
        ),
        ("\n\n'a' !== 'b'\n", "\n\n'a' !== 'b'\n ^\n"),
    ],
)
def test_how_a_version_of_node_draws_a_difference_makes_none(one: str, other: str) -> None:
    said = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
    keys = [signed(said, f"{said}{drawn}{AT_TEST}").key for drawn in (one, other, other.replace("b", "d"))]
    assert keys[0] == keys[1] != keys[2]
