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


def sign_failure(message: str, detail: str) -> Signature:
    case = Case(id=TEST, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: path.startswith("src/"), roots=["/work/repo"])


def sign_node_failure(value: str) -> Signature:
    message = "Expected values to be strictly equal:"
    return sign_failure(
        f"AssertionError: {message}\n{value} !== 4",
        f"AssertionError [ERR_ASSERTION]: {message}\n\n{value} !== 4\n{AT_TEST}",
    )


def sign_jest_failure(value: str) -> Signature:
    message = "expect(received).toBe(expected) // Object.is equality"
    return sign_failure(
        f"Error: {message}\nExpected: 4\nReceived: {value}",
        f"Error: {message}\n\nExpected: 4\nReceived: {value}\n    at Object.toBe (test/cart.test.js:5:30)",
    )


def sign_vitest_failure(value: str) -> Signature:
    message = f"AssertionError: expected {value} to be 4 // Object.is equality"
    return sign_failure(message, f"{message}\n    at /work/repo/test/cart.test.js:5:30")


def sign_mocha_failure(value: str) -> Signature:
    message = f"AssertionError: expected {value} to equal 4"
    return sign_failure(message, f"{message}\n    at Context.<anonymous> (test/cart.test.js:5:30)")


@pytest.mark.parametrize("runner", [sign_node_failure, sign_jest_failure, sign_vitest_failure, sign_mocha_failure])
def test_wrong_value_is_identified_by_test_and_value(runner: object) -> None:
    assert callable(runner)
    first_signature, same_signature, other_signature = runner("3"), runner("3"), runner("5")
    assert first_signature.frame == TEST
    assert first_signature.key == same_signature.key != other_signature.key
    assert first_signature.family == other_signature.family


def test_measured_time_does_not_affect_the_fingerprint() -> None:
    template = "AssertionError: expected {} to be below 100"
    first_signature, other_signature = (
        sign_failure(template.format(milliseconds), f"{template.format(milliseconds)}{AT_TEST}")
        for milliseconds in (153, 121)
    )
    assert first_signature.key == other_signature.key


@pytest.mark.parametrize(
    "place", ["file:///work/repo/src/cart.js:9:3", "/work/repo/src/cart.js:77:1", "src/cart.js:2:2"]
)
def test_error_in_source_is_identified_by_its_function(place: str) -> None:
    message = "TypeError: Cannot read properties of undefined (reading 'price')"
    signature = sign_failure(message, f"{message}\n    at Object.total [as sum] ({place}){AT_TEST}")
    assert (signature.exception, signature.frame) == ("TypeError", "src/cart.js:total")
    assert (
        signature.key
        != sign_failure(message.replace("price", "name"), f"{message}\n    at total ({place}){AT_TEST}").key
    )


def test_installed_package_is_not_source() -> None:
    message = "TypeError: x is not a function"
    detail = f"{message}\n    at deep (node_modules/lib/src/a.js:3:4)\n    at Cart.add (src/cart.js:3:4){AT_TEST}"
    assert sign_failure(message, detail).frame == "src/cart.js:Cart.add"


def test_error_code_does_not_affect_the_fingerprint() -> None:
    message = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
    signature = sign_failure(message, f"{message}\n\n3 !== 4\n{AT_TEST}")
    assert (signature.exception, signature.message) == (
        "AssertionError",
        "Expected values to be strictly equal: 3 !== 4",
    )
    assert signature.key == sign_node_failure("3").key


@pytest.mark.parametrize(
    ("first_difference", "other_difference"),
    [
        ("\n\nnull !== 'cat, bat'\n", "\n+ actual - expected\n\n+ null\n- 'cat, bat'\n"),
        (
            "\n+ actual - expected\n\n  [\n+   'a',\n+   'b'\n-   'b',\n-   'a'\n  ]\n",
            "\n+ actual - expected\n\n  [\n+   'a',\n    'b',\n-   'a'\n  ]\n",
        ),
        ("\n\n'a' !== 'b'\n", "\n\n'a' !== 'b'\n ^\n"),
    ],
)
def test_diff_style_of_a_node_version_does_not_affect_the_fingerprint(
    first_difference: str, other_difference: str
) -> None:
    message = "AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:"
    keys = [
        sign_failure(message, f"{message}{difference}{AT_TEST}").key
        for difference in (first_difference, other_difference, other_difference.replace("b", "d"))
    ]
    assert keys[0] == keys[1] != keys[2]
