"""A rewritten file gets the imports back that it lost and still needs, and no others."""

from __future__ import annotations

import pytest

from redstart.core.change import Edit, EditFit, EditKind
from redstart.toolkit.languages.python.edited_code import restore_imports
from redstart.toolkit.patching.fitting.edit_file import FittedFile, apply_edit

FILE = '''"""Prices."""

from __future__ import annotations

import math
from collections import (
    Counter,
    deque,
)
from typing import List as Listed


@print
def total(prices: Listed[float]) -> int:
    return math.floor(sum(prices))
'''
HEAD = "from __future__ import annotations\n\n"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (
            "def total(prices: Listed[float]) -> int:\n    return math.ceil(sum(prices))\n",
            "from __future__ import annotations\nimport math\nfrom typing import List as Listed\n\n\n"
            "def total(prices: Listed[float]) -> int:\n    return math.ceil(sum(prices))\n",
        ),
        (
            HEAD + "@cache\ndef total(prices):\n    return Counter(prices)\n",
            HEAD + "from collections import (\n    Counter,\n    deque,\n)\n\n\n"
            "@cache\ndef total(prices):\n    return Counter(prices)\n",
        ),
        (HEAD + "import os\n\nprint(math.pi)\n", HEAD + "import math\nimport os\n\nprint(math.pi)\n"),
        (HEAD + "print(math.pi)\n", HEAD + "import math\n\nprint(math.pi)\n"),
    ],
    ids=["all", "several-names", "below-imports", "above-code"],
)
def test_needed_imports_come_back(new, expected):
    assert restore_imports(FILE.splitlines(), new.splitlines()) == expected.splitlines()


@pytest.mark.parametrize(
    "new",
    [
        "def total(prices):\n    return sum(prices)\n",
        "def total(prices, math):\n    return math.floor(sum(prices))\n",
        "def total(prices):\n    import math\n    return math.floor(sum(prices))\n",
        "import numpy as math\n\n\ndef total(prices):\n    return math.floor(sum(prices))\n",
        "math = object()\nprint(math)\n",
        "def total(prices:\n",
    ],
    ids=["not-needed", "parameter", "imported-inside", "other-module", "assigned", "no-program"],
)
def test_unneeded_imports_stay_out(new):
    lines = (HEAD + new).splitlines()
    assert restore_imports(FILE.splitlines(), lines) == lines


def test_answer_without_imports_replaces_the_file():
    source = "from math import floor\n\n\ndef total(prices):\n    return floor(max(prices))\n"
    answer = "def total(prices):\n    return floor(sum(prices))\n"
    outcome = apply_edit(Edit(kind=EditKind.whole, path="cart.py", text=answer), "cart.py", source.encode())
    assert outcome == FittedFile(source.replace("max", "sum").encode(), EditFit.exact)
