"""Which tests can notice a change."""

from __future__ import annotations

from redstart.toolkit.retrieval.affected_tests import find_affected_tests

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


def find_reaching_tests(*changed_paths: str) -> list[str]:
    reaching_tests = find_affected_tests(
        changed_paths, sorted(FILES), lambda path: FILES[path].encode(), lambda path: "test" in path
    )
    return [path.removeprefix("tests/") for path in reaching_tests if path != "tests/helpers.py"]


def test_tests_reach_modules_directly_and_through_other_modules() -> None:
    assert find_reaching_tests("src/shop/money.py") == ["test_money.py", "test_price.py"]
    assert find_reaching_tests("src/shop/price.py") == ["test_price.py"]


def test_tests_reach_modules_through_helpers_and_conftest() -> None:
    assert find_reaching_tests("src/shop/words.py") == ["db/test_db.py", "test_words.py"]


def test_changed_test_is_included_and_unknown_files_reach_nothing() -> None:
    assert find_reaching_tests("tests/test_none.py") == ["test_none.py"]
    assert find_reaching_tests("src/absent.py", "README.md") == []
