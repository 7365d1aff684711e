from __future__ import annotations

import pytest

from redstart.core.report import Case, Outcome
from redstart.toolkit.retrieval.code_reader import CodePlace
from redstart.toolkit.retrieval.query import MAX_WORDS, ask, locate
from redstart.toolkit.retrieval.sources import Sources

TREE = {
    "src/shop/__init__.py": b"from .sums import priced as price\nfrom shop.cart import Cart\n",
    "src/shop/cart.py": b"class Cart: ...\n",
    "src/shop/sums.py": b"def priced(): ...\n",
    "src/shop/tax.py": b"RATE = 1\n",
    "tests/helpers.py": b"def stocked(): ...\n",
    "tests/test_shop.py": b"""import json
from shop import Cart, price
import shop.tax as tax
from .helpers import stocked

@pytest.fixture
def basket():
    return Cart(currency="euro")

class TestTotal:
    def setUp(self):
        self.vat = tax.RATE

    @pytest.mark.slow
    def test_total(self, basket):
        amount = price(basket.lines(rounding="half"))
        assert amount == 3

def test_other():
    stocked().unrelated()
""",
}


def case(test_id: str, message: str = "") -> Case:
    return Case(id=test_id, outcome=Outcome.failed, message=message)


def sources(tree: dict[str, bytes] = TREE) -> Sources:
    return Sources(tree, tree.get)


@pytest.mark.parametrize(
    ("test_id", "names"),
    [
        ("tests/test_shop.py::TestTotal::test_total[a::b]", ["TestTotal", "test_total"]),
        ("tests.test_shop.TestTotal.test_total", ["TestTotal", "test_total"]),
        ("test_shop.TestTotal.test_total", ["TestTotal", "test_total"]),
        ("tests/test_shop.py", []),
    ],
)
def test_a_test_id_is_located(test_id: str, names: list[str]) -> None:
    assert locate(test_id, ["tests/test_shop.py", "tests/test_s.py"]) == ("tests/test_shop.py", names)


def test_an_id_of_no_known_file_is_nowhere() -> None:
    assert locate("elsewhere.test_x", ["tests/test_shop.py"]) == ("", [])


def test_the_query_holds_what_the_failing_function_uses_and_nothing_of_its_neighbours() -> None:
    query = ask([case("tests/test_shop.py::TestTotal::test_total", "no attribute 'lines'")], "", [], sources())
    assert query.tests == [CodePlace("tests/test_shop.py", 14, 17)]
    assert query.helpers == [CodePlace("tests/test_shop.py", 6, 8), CodePlace("tests/test_shop.py", 11, 12)]
    assert query.words[0] == "lines"
    assert {"Cart", "price", "basket", "rounding", "currency", "euro", "RATE", "tax"} <= set(query.words)
    assert not {"unrelated", "stocked", "amount", "self", "assert"} & set(query.words)
    assert set(query.imports) == {"src/shop/sums.py", "src/shop/cart.py", "src/shop/tax.py"}


def test_a_module_that_cannot_be_imported_is_asked_about_as_a_whole() -> None:
    query = ask([case("tests/test_shop.py")], "", [], sources())
    assert query.tests == [CodePlace("tests/test_shop.py", 1, 20)]
    assert "tests/helpers.py" in query.imports


def test_a_test_that_does_not_parse_is_still_shown() -> None:
    tree = {"test_a.py": b"def test_x(:\n    frob()\n"}
    assert ask([case("test_a.py::test_x")], "", [], sources(tree)).tests == [CodePlace("test_a.py", 1, 2)]


def test_a_goal_in_words_is_a_query_too_and_words_are_capped() -> None:
    assert ask([], "make Cart.total round the sum", [], sources()).words == ["make", "Cart", "total"]
    assert len(ask([], " ".join(f"word_{n}" for n in range(500)), [], sources()).words) == MAX_WORDS
