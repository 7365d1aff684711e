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


def create_case(test_id: str, message: str = "") -> Case:
    return Case(id=test_id, outcome=Outcome.failed, message=message)


def create_sources(tree: dict[str, bytes] = TREE) -> Sources:
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
def test_test_id_is_located(test_id: str, names: list[str]) -> None:
    assert locate(test_id, ["tests/test_shop.py", "tests/test_s.py"]) == ("tests/test_shop.py", names)


def test_id_of_an_unknown_file_is_not_located() -> None:
    assert locate("elsewhere.test_x", ["tests/test_shop.py"]) == ("", [])


def test_query_holds_words_of_the_failing_function_but_not_its_neighbors() -> None:
    query = ask(
        [create_case("tests/test_shop.py::TestTotal::test_total", "no attribute 'lines'")], "", [], create_sources()
    )
    assert query.tests == [CodePlace("tests/test_shop.py", 14, 17)]
    assert query.helpers == [CodePlace("tests/test_shop.py", 6, 8), CodePlace("tests/test_shop.py", 11, 12)]
    assert query.identifiers[0] == "lines"
    assert {"Cart", "price", "basket", "rounding", "currency", "euro", "RATE", "tax"} <= set(query.identifiers)
    assert not {"unrelated", "stocked", "amount", "self", "assert"} & set(query.identifiers)
    assert set(query.imports) == {"src/shop/sums.py", "src/shop/cart.py", "src/shop/tax.py"}


def test_query_for_an_unimportable_module_covers_the_whole_file() -> None:
    query = ask([create_case("tests/test_shop.py")], "", [], create_sources())
    assert query.tests == [CodePlace("tests/test_shop.py", 1, 20)]
    assert "tests/helpers.py" in query.imports


def test_unparsable_test_is_still_shown() -> None:
    tree = {"test_a.py": b"def test_x(:\n    frob()\n"}
    assert ask([create_case("test_a.py::test_x")], "", [], create_sources(tree)).tests == [CodePlace("test_a.py", 1, 2)]


def test_goal_in_words_is_a_query_and_words_are_limited() -> None:
    assert ask([], "make Cart.total round the sum", [], create_sources()).identifiers == ["make", "Cart", "total"]
    assert len(ask([], " ".join(f"word_{n}" for n in range(500)), [], create_sources()).identifiers) == MAX_WORDS
