"""The place of a failure depends neither on where the tests were started nor on functions without a name."""

from __future__ import annotations

import pytest

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

ROOT = "/srv/checkout/shop"
TEST = "tests/test_cart.py::test_total"
SAID = "AttributeError: 'Cart' object has no attribute 'totl'"


def sign_failure(message: str, detail: str, test: str = TEST, roots: tuple[str, ...] = (ROOT,)) -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=lambda path: not path.startswith("test"), roots=roots)


def sign_source_error(tests: str, source: str) -> Signature:
    """Sign an error as pytest reports it where its folder shows `tests/` and `src/` by these prefixes."""
    test = f"{tests}test_cart.py:3: in test_total\n    total()\n"
    return sign_failure(SAID, f"{test}{source}cart.py:9: in total\n    self.totl()\nE   {SAID}\n")


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
def test_start_directory_does_not_affect_the_fingerprint(tests: str, source: str) -> None:
    signature = sign_source_error(tests, source)
    assert signature.frame == "src/cart.py:total"
    assert signature.key == sign_source_error("tests/", "src/").key


def test_relative_path_into_the_repo_is_resolved_without_a_test_frame() -> None:
    detail = f"../shop/src/cart.py:9: in total\n    self.totl()\nE   {SAID}\n"
    assert sign_failure(SAID, detail).frame == "src/cart.py:total"


@pytest.mark.parametrize(
    "outside_path", ["../venv/lib.py", "/usr/lib/odd.py", "../../shops/src/cart.py", "tool/run.py"]
)
def test_frame_outside_the_repo_is_not_source(outside_path: str) -> None:
    detail = (
        f"shop/tests/test_cart.py:3: in test_total\n    total()\n{outside_path}:9: "
        f"in total\n    x()\nE   ValueError: x\n"
    )
    assert sign_failure("ValueError: x", detail).frame == TEST


def test_failing_line_is_found_from_any_start_directory() -> None:
    first_signature, other_signature = (
        sign_failure(
            "assert 1 == 2", f"{tests}test_cart.py:3: in test_total\n    assert total() == 2\nE   assert 1 == 2\n"
        )
        for tests in ("tests/", "../../srv/checkout/shop/tests/")
    )
    assert first_signature.at == other_signature.at == "assert total() == 2"
    assert first_signature.key == other_signature.key


def test_directory_with_the_name_of_the_repo_is_kept() -> None:
    detail = f"tests/test_cart.py:3: in test_total\n    total()\nshop/cart.py:9: in total\n    x()\nE   {SAID}\n"
    assert sign_failure(SAID, detail).frame == "shop/cart.py:total"


def test_lambda_called_by_a_test_belongs_to_the_source() -> None:
    source_frame = "src/cart.py:9: in <lambda>\n    key = lambda: object.__hash__()\nE   TypeError: needs an argument\n"
    first_signature, other_signature = (
        sign_failure(
            "TypeError: needs an argument", f"tests/test_cart.py:3: in {name}\n    {name}()\n{source_frame}", name
        )
        for name in ("test_total", "test_other")
    )
    assert first_signature.frame == "src/cart.py:<module>"
    assert first_signature.key == other_signature.key


def test_lambda_belongs_to_the_enclosing_function_of_its_own_file() -> None:
    outer_frame = "src/cart.py:3: in total\n    go(lambda: x)\n"
    lambda_ = "src/cart.py:4: in <lambda>\n    go(lambda: x)\nE   NameError: x\n"
    between = "src/tools.py:7: in go\n    f()\n"
    assert sign_failure("NameError: x", outer_frame + between + lambda_).frame == "src/cart.py:total"
    assert sign_failure("NameError: x", between + lambda_).frame == "src/cart.py:<module>"


SCRIPT = "test/cart.test.js::Cart > adds"


@pytest.mark.parametrize("root", [ROOT, "/home/me/My Code/shop"])
def test_anonymous_script_function_belongs_to_the_enclosing_one(root: str) -> None:
    message = "TypeError: split.shft is not a function"
    detail = (
        f"{message}\n    at {root}/index.js:119:29\n    at Array.forEach (<anonymous>)\n"
        "    at unflatten (index.js:117:23)\n    at Context.<anonymous> (test/cart.test.js:42:30)"
    )
    assert sign_failure(message, detail, SCRIPT, (root,)).frame == "index.js:unflatten"


def test_script_frame_may_contain_a_directory_with_a_space() -> None:
    message, root = "TypeError: split.shft is not a function", "/home/me/My Code/shop"
    assert (
        sign_failure(message, f"{message}\n    at unflatten ({root}/index.js:117:23)", SCRIPT, (root,)).frame
        == "index.js:unflatten"
    )


def test_top_level_of_a_script_is_its_module() -> None:
    message = "ReferenceError: x is not defined"
    for frame in (f"file://{ROOT}/index.mjs:3:1", f"Object.<anonymous> ({ROOT}/index.mjs:3:1)"):
        assert sign_failure(message, f"{message}\n    at {frame}", SCRIPT).frame == "index.mjs:<module>"


def test_unparsable_script_is_the_frame() -> None:
    message = "SyntaxError: missing ) after argument list"
    detail = (
        f"{ROOT}/lib/cart.js:12\n  add(1\n      ^\n\n{message}\n    at wrapSafe "
        f"(node:internal/modules/cjs/loader:1378:20)"
    )
    signature = sign_failure(message, detail, SCRIPT)
    assert (signature.frame, signature.message) == ("lib/cart.js:<module>", "missing ) after argument list")


def sign_syntax_error(line: str, caret: str, message: str) -> Signature:
    excerpt = f'E     File "{ROOT}/src/cart.py", line 3\nE       {line}\nE       {caret}\nE   {message}\n'
    return sign_failure(
        "collection failure", f"tests/test_cart.py:1: in <module>\n    import cart\n{excerpt}", "tests/test_cart.py"
    )


def test_syntax_error_is_identified_by_its_line_not_its_message() -> None:
    old = sign_syntax_error("for x in y", "          ^", "SyntaxError: invalid syntax")
    new = sign_syntax_error("for x in y", "          ^", "SyntaxError: expected ':'")
    other_signature = sign_syntax_error("while x", "       ^", "SyntaxError: expected ':'")
    assert old.key == new.key != other_signature.key


def test_unclosed_bracket_has_the_same_fingerprint_in_python_3_9() -> None:
    new = sign_syntax_error("return f(x", "        ^", "SyntaxError: '(' was never closed")
    old = sign_syntax_error("return y", "^", "SyntaxError: invalid syntax")
    colon = sign_syntax_error("for x in y", "          ^", "SyntaxError: expected ':'")
    assert new.key == old.key != colon.key
