"""A failure in a small shop, and its signature."""

from __future__ import annotations

from redstart.core.learning import Signature
from redstart.core.report import Case, Outcome
from redstart.toolkit.learning.signature import sign

ROOT = "/work/repo"


LONG = """self = <tests.test_shop.TestCart object at 0x7f00aa>

    def test_total(self):
>       Cart().total({})

tests/test_shop.py:6: 
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 
src/shop/cart.py:25: in total
    return priced(x)
           ^^^^^^^^^
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ 

y = {}

    @cached
    def priced(y):
        def inner(): ...
>       return y["nope"]
               ^^^^^^^^^
E       KeyError: 'nope'

src/shop/cart.py:14: KeyError
"""  # noqa: W291


def is_source(path: str) -> bool:
    return path.startswith("src/")


def sign_failure(message: str, detail: str = "", test: str = "tests/test_shop.py::TestCart::test_total") -> Signature:
    case = Case(id=test, outcome=Outcome.failed, message=message, detail=detail)
    return sign(case, is_source=is_source, roots=[ROOT])
