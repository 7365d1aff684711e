"""Which tests can notice a change."""

from __future__ import annotations

from redstart.toolkit.retrieval.reach import tests_reaching

FILES = {
    "src/shop/__init__.py": "from .price import price\n",
    "src/shop/price.py": "from shop.money import cents\n",
    "src/shop/money.py": "def cents(): ...\n",
    "src/shop/words.py": "",
    "tests/conftest.py": "",
    "tests/helpers.py": "import shop.words\n",
    "tests/test_money.py": "def test_a():\n    from shop.money import cents\n",
    "tests/test_price.py": "from shop import price\n",
    "tests/test_words.py": "from helpers import something\n",
    "tests/db/conftest.py": "import shop.words\n",
    "tests/db/test_db.py": "def test_money(): ...\n",
    "tests/test_none.py": "import json  # of money, price, words\n",
    "tests/test_broken.py": "import (money\n",
}


def reaching(*touched: str) -> list[str]:
    found = tests_reaching(touched, sorted(FILES), lambda path: FILES[path].encode(), lambda path: "test" in path)
    return [path.removeprefix("tests/") for path in found if path != "tests/helpers.py"]


def test_straight_and_over_other_modules() -> None:
    assert reaching("src/shop/money.py") == ["test_money.py", "test_price.py"]
    assert reaching("src/shop/price.py") == ["test_price.py"]


def test_over_helpers_and_conftest() -> None:
    assert reaching("src/shop/words.py") == ["db/test_db.py", "test_words.py"]


def test_a_test_that_is_touched_is_among_them_and_what_is_unknown_reaches_nothing() -> None:
    assert reaching("tests/test_none.py") == ["test_none.py"]
    assert reaching("src/absent.py", "README.md") == []
