"""The place of a failure depends neither on where the tests were started nor on functions without a name."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

ROOT = "/srv/checkout/shop"
TEST = "tests/test_cart.py::test_total"
SAID = "AttributeError: 'Cart' object has no attribute 'totl'"


def signed(message: str, detail: str, test: str = TEST, roots: tuple[str, ...] = (ROOT,)) -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: not path.startswith("test"), roots=roots)


def raised_in_source(tests: str, source: str) -> Signature:
    """Sign an error as pytest reports it where its folder shows `tests/` and `src/` by these prefixes."""
    test = f"{tests}test_cart.py:3: in test_total\n    total()\n"
    return signed(SAID, f"{test}{source}cart.py:9: in total\n    self.totl()\nE   {SAID}\n")


@pytest.mark.parametrize(
    ("tests", "source"),
    [
        (f"{ROOT}/tests/", f"{ROOT}/src/"),
        ("../../srv/checkout/shop/tests/", "../../srv/checkout/shop/src/"),
        ("../shop/tests/", "../shop/src/"),
        ("shop/tests/", "shop/src/"),
        ("", "../src/"),
    ],
)
def test_the_folder_in_which_the_tests_were_begun_makes_no_difference(tests: str, source: str) -> None:
    found = raised_in_source(tests, source)
    assert found.frame == "src/cart.py:total"
    assert found.key == raised_in_source("tests/", "src/").key


def test_a_path_that_climbs_into_the_repo_is_known_where_the_test_is_not_shown() -> None:
    detail = f"../shop/src/cart.py:9: in total\n    self.totl()\nE   {SAID}\n"
    assert signed(SAID, detail).frame == "src/cart.py:total"


@pytest.mark.parametrize("elsewhere", ["../venv/lib.py", "/usr/lib/odd.py", "../../shops/src/cart.py", "tool/run.py"])
def test_what_lies_outside_of_the_repo_is_not_its_source(elsewhere: str) -> None:
    detail = (
        f"shop/tests/test_cart.py:3: in test_total\n    total()\n{elsewhere}:9: in total\n    x()\nE   ValueError: x\n"
    )
    assert signed("ValueError: x", detail).frame == TEST


def test_the_line_of_the_test_is_known_wherever_it_was_begun() -> None:
    here, there = (
        signed("assert 1 == 2", f"{tests}test_cart.py:3: in test_total\n    assert total() == 2\nE   assert 1 == 2\n")
        for tests in ("tests/", "../../srv/checkout/shop/tests/")
    )
    assert here.at == there.at == "assert total() == 2"
    assert here.key == there.key


def test_a_folder_of_the_repo_that_is_called_like_it_stays() -> None:
    detail = f"tests/test_cart.py:3: in test_total\n    total()\nshop/cart.py:9: in total\n    x()\nE   {SAID}\n"
    assert signed(SAID, detail).frame == "shop/cart.py:total"


def test_a_lambda_of_the_source_that_a_test_calls_is_in_the_source() -> None:
    below = "src/cart.py:9: in <lambda>\n    key = lambda: object.__hash__()\nE   TypeError: needs an argument\n"
    one, other = (
        signed("TypeError: needs an argument", f"tests/test_cart.py:3: in {name}\n    {name}()\n{below}", name)
        for name in ("test_total", "test_other")
    )
    assert one.frame == "src/cart.py:<module>"
    assert one.key == other.key


def test_what_has_no_name_belongs_to_the_function_around_it_in_its_own_file() -> None:
    around = "src/cart.py:3: in total\n    go(lambda: x)\n"
    lambda_ = "src/cart.py:4: in <lambda>\n    go(lambda: x)\nE   NameError: x\n"
    between = "src/tools.py:7: in go\n    f()\n"
    assert signed("NameError: x", around + between + lambda_).frame == "src/cart.py:total"
    assert signed("NameError: x", between + lambda_).frame == "src/cart.py:<module>"


SCRIPT = "test/cart.test.js::Cart > adds"


@pytest.mark.parametrize("root", [ROOT, "/home/me/My Code/shop"])
def test_a_function_of_a_script_without_a_name_belongs_to_the_one_around_it(root: str) -> None:
    said = "TypeError: split.shft is not a function"
    detail = (
        f"{said}\n    at {root}/index.js:119:29\n    at Array.forEach (<anonymous>)\n"
        "    at unflatten (index.js:117:23)\n    at Context.<anonymous> (test/cart.test.js:42:30)"
    )
    assert signed(said, detail, SCRIPT, (root,)).frame == "index.js:unflatten"


def test_a_folder_with_a_space_is_read_in_a_frame_of_a_script() -> None:
    said, root = "TypeError: split.shft is not a function", "/home/me/My Code/shop"
    assert (
        signed(said, f"{said}\n    at unflatten ({root}/index.js:117:23)", SCRIPT, (root,)).frame
        == "index.js:unflatten"
    )


def test_the_top_of_a_script_is_its_module() -> None:
    said = "ReferenceError: x is not defined"
    for at in (f"file://{ROOT}/index.mjs:3:1", f"Object.<anonymous> ({ROOT}/index.mjs:3:1)"):
        assert signed(said, f"{said}\n    at {at}", SCRIPT).frame == "index.mjs:<module>"


def test_a_script_that_cannot_be_read_is_the_frame() -> None:
    said = "SyntaxError: missing ) after argument list"
    detail = (
        f"{ROOT}/lib/cart.js:12\n  add(1\n      ^\n\n{said}\n    at wrapSafe (node:internal/modules/cjs/loader:1378:20)"
    )
    found = signed(said, detail, SCRIPT)
    assert (found.frame, found.message) == ("lib/cart.js:<module>", "missing ) after argument list")


def unread(line: str, caret: str, said: str) -> Signature:
    shown = f'E     File "{ROOT}/src/cart.py", line 3\nE       {line}\nE       {caret}\nE   {said}\n'
    return signed(
        "collection failure", f"tests/test_cart.py:1: in <module>\n    import cart\n{shown}", "tests/test_cart.py"
    )


def test_another_line_that_python_cannot_read_is_another_bug_whatever_it_says_about_it() -> None:
    old = unread("for x in y", "          ^", "SyntaxError: invalid syntax")
    new = unread("for x in y", "          ^", "SyntaxError: expected ':'")
    other = unread("while x", "       ^", "SyntaxError: expected ':'")
    assert old.key == new.key != other.key


def test_a_bracket_that_is_not_closed_is_one_bug_in_python_3_9_too() -> None:
    new = unread("return f(x", "        ^", "SyntaxError: '(' was never closed")
    old = unread("return y", "^", "SyntaxError: invalid syntax")
    colon = unread("for x in y", "          ^", "SyntaxError: expected ':'")
    assert new.key == old.key != colon.key
