"""A new test must fail for the reason that it is about."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.suites.new_tests.requested_tests import (
    NewTestContext,
    find_example,
    find_test_problem,
    parse_confidence,
)
from redstart.toolkit.suites.problems.project import create_project_view

NEW = "tests/test_new.py"
FILES = {"shop/cart.py": b"def total(items):\n    return 0\n", NEW: b"from shop.cart import total, coupon\n"}
OLD = Case(id="tests/test_cart.py::test_total", outcome=Outcome.passed)


def create_context(goal: str = "Add a function coupon to shop.cart") -> NewTestContext:
    return NewTestContext(
        goal, create_project_view(FILES, FILES.get, "/repo"), lambda id_: id_.partition("::")[0] == NEW
    )


def create_failing_case(
    message: str, detail: str = "", name: str = "::test_it", outcome: Outcome = Outcome.failed
) -> Case:
    detail = detail or f"E   {message}\n\n{NEW}:3: {message.partition(':')[0]}"
    return Case(id=f"{NEW}{name}", outcome=outcome, message=message, detail=detail)


@pytest.mark.parametrize(
    ("case", "goal", "reason"),
    [
        (create_failing_case("assert 0 == 3"), "", ""),
        (create_failing_case("NameError: name 'totl' is not defined"), "", "the name totl, which it does not define"),
        (
            create_failing_case(
                "NameError: name 'x' is not defined",
                "E   NameError: name 'x' is not defined\n\nshop/cart.py:2: NameError",
            ),
            "",
            "",
        ),
        (create_failing_case("ImportError: cannot import name 'coupon' from 'shop.cart'"), "add coupon", ""),
        (
            create_failing_case("ImportError: cannot import name 'coupon' from 'shop.cart'"),
            "add something",
            "coupon, which is neither",
        ),
        (create_failing_case("ModuleNotFoundError: No module named 'shop.coupon'"), "a module coupon", ""),
        (create_failing_case("ModuleNotFoundError: No module named 'shop.coupon'"), "", "it uses coupon"),
        (create_failing_case("ModuleNotFoundError: No module named 'numpy'"), "", "it uses numpy"),
        (create_failing_case("AttributeError: module 'shop.cart' has no attribute 'coupon'"), "coupon", ""),
        (
            create_failing_case("AttributeError: module 'shop.cart' has no attribute 'voucher'"),
            "coupon",
            "it uses voucher",
        ),
        (create_failing_case("AttributeError: 'NoneType' object has no attribute 'total'"), "", ""),
        (
            create_failing_case(
                "fixture 'cart' not found", "E       fixture 'cart' not found\n>   available fixtures: tmp_path"
            ),
            "",
            "fixture cart",
        ),
        (create_failing_case("TypeError: total() got an unexpected keyword argument 'tax'"), "", ""),
        (
            create_failing_case("ConnectionRefusedError: [Errno 111] Connection refused"),
            "",
            "it needs what is not there",
        ),
    ],
)
def test_a_mistake_of_its_own_is_told_from_what_is_missing(case, goal, reason):
    result = find_test_problem([OLD], [OLD, case], create_context(goal))
    assert (reason in result) if reason else result == ""


def test_new_test_must_fail_and_leave_other_tests_unchanged():
    passing_case = Case(id=f"{NEW}::test_it", outcome=Outcome.passed)
    assert find_test_problem([OLD], [OLD], create_context()) == "no test was found in it"
    assert "all of it passes" in find_test_problem([OLD], [OLD, passing_case], create_context())
    assert (
        find_test_problem(
            [OLD], [OLD, passing_case, create_failing_case("assert 0 == 3", name="::test_more")], create_context()
        )
        == ""
    )
    failing_case = OLD.model_copy(update={"outcome": Outcome.failed})
    assert "test_total fails, which passed before" in find_test_problem(
        [OLD], [failing_case, create_failing_case("assert 0 == 3")], create_context()
    )
    assert (
        find_test_problem([failing_case], [failing_case, create_failing_case("assert 0 == 3")], create_context()) == ""
    )
    assert "test_total is not run any more" in find_test_problem(
        [OLD], [create_failing_case("assert 0 == 3")], create_context()
    )


@pytest.mark.parametrize(
    ("answer", "level", "reason"),
    [
        ("SURE: high, the issue says so\n\ntests/t.py", "high", "the issue says so"),
        ("some words\n**SURE:** Medium - it may mean the other one", "medium", "it may mean the other one"),
        ("sure: low", "low", ""),
        ("SURE: absolutely", "", ""),
        ("I am sure: high", "", ""),
        ("", "", ""),
    ],
)
def test_confidence_is_read_from_the_answer(answer, level, reason):
    assert parse_confidence(answer) == (level, reason)


def test_shortest_test_with_an_assertion_is_the_example():
    texts = {
        "a.py": b"def test_a():\n    assert 1\n",
        "b.py": b"x = 1\n",
        "c.py": b"def test_c():\n    assert 1 == 1\n",
    }
    example = find_example(texts, texts.get)
    assert example is not None
    assert example.path == "a.py"
    assert find_example(["b.py"], texts.get) is None
