"""A new test must fail for the reason that it is about."""

from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.suites.new_tests.asked import NewTestContext, example_of, sureness, why_unfit
from redstart.toolkit.suites.problems.project import project_of

NEW = "tests/test_new.py"
FILES = {"shop/cart.py": b"def total(items):\n    return 0\n", NEW: b"from shop.cart import total, coupon\n"}
OLD = Case(id="tests/test_cart.py::test_total", outcome=Outcome.passed)


def asked(told: str = "Add a function coupon to shop.cart") -> NewTestContext:
    return NewTestContext(told, project_of(FILES, FILES.get, "/repo"), lambda id_: id_.partition("::")[0] == NEW)


def red(message: str, detail: str = "", name: str = "::test_it", outcome: Outcome = Outcome.failed) -> Case:
    detail = detail or f"E   {message}\n\n{NEW}:3: {message.partition(':')[0]}"
    return Case(id=f"{NEW}{name}", outcome=outcome, message=message, detail=detail)


@pytest.mark.parametrize(
    ("case", "told", "reason"),
    [
        (red("assert 0 == 3"), "", ""),
        (red("NameError: name 'totl' is not defined"), "", "the name totl, which it does not define"),
        (
            red(
                "NameError: name 'x' is not defined",
                "E   NameError: name 'x' is not defined\n\nshop/cart.py:2: NameError",
            ),
            "",
            "",
        ),
        (red("ImportError: cannot import name 'coupon' from 'shop.cart'"), "add coupon", ""),
        (red("ImportError: cannot import name 'coupon' from 'shop.cart'"), "add something", "coupon, which is neither"),
        (red("ModuleNotFoundError: No module named 'shop.coupon'"), "a module coupon", ""),
        (red("ModuleNotFoundError: No module named 'shop.coupon'"), "", "it uses coupon"),
        (red("ModuleNotFoundError: No module named 'numpy'"), "", "it uses numpy"),
        (red("AttributeError: module 'shop.cart' has no attribute 'coupon'"), "coupon", ""),
        (red("AttributeError: module 'shop.cart' has no attribute 'voucher'"), "coupon", "it uses voucher"),
        (red("AttributeError: 'NoneType' object has no attribute 'total'"), "", ""),
        (
            red("fixture 'cart' not found", "E       fixture 'cart' not found\n>   available fixtures: tmp_path"),
            "",
            "fixture cart",
        ),
        (red("TypeError: total() got an unexpected keyword argument 'tax'"), "", ""),
        (red("ConnectionRefusedError: [Errno 111] Connection refused"), "", "it needs what is not there"),
    ],
)
def test_a_mistake_of_its_own_is_told_from_what_is_missing(case, told, reason):
    found = why_unfit([OLD], [OLD, case], asked(told))
    assert (reason in found) if reason else found == ""


def test_it_must_be_found_red_and_leave_the_others_alone():
    green = Case(id=f"{NEW}::test_it", outcome=Outcome.passed)
    assert why_unfit([OLD], [OLD], asked()) == "no test was found in it"
    assert "all of it passes" in why_unfit([OLD], [OLD, green], asked())
    assert why_unfit([OLD], [OLD, green, red("assert 0 == 3", name="::test_more")], asked()) == ""
    broken = OLD.model_copy(update={"outcome": Outcome.failed})
    assert "test_total fails, which passed before" in why_unfit([OLD], [broken, red("assert 0 == 3")], asked())
    assert why_unfit([broken], [broken, red("assert 0 == 3")], asked()) == ""
    assert "test_total is not run any more" in why_unfit([OLD], [red("assert 0 == 3")], asked())


@pytest.mark.parametrize(
    ("answer", "level", "why"),
    [
        ("SURE: high, the issue says so\n\ntests/t.py", "high", "the issue says so"),
        ("some words\n**SURE:** Medium - it may mean the other one", "medium", "it may mean the other one"),
        ("sure: low", "low", ""),
        ("SURE: absolutely", "", ""),
        ("I am sure: high", "", ""),
        ("", "", ""),
    ],
)
def test_how_sure_it_is(answer, level, why):
    assert sureness(answer) == (level, why)


def test_the_shortest_test_that_checks_something_is_the_example():
    texts = {
        "a.py": b"def test_a():\n    assert 1\n",
        "b.py": b"x = 1\n",
        "c.py": b"def test_c():\n    assert 1 == 1\n",
    }
    found = example_of(texts, texts.get)
    assert found is not None
    assert found.path == "a.py"
    assert example_of(["b.py"], texts.get) is None
