"""How far an edit is adapted to fit, and where that ends."""

from __future__ import annotations

import pytest

from redstart.core.change import EditFit
from redstart.toolkit.patching.ladder import EditedFiles, put
from redstart.toolkit.patching.reading.parse import parse

OLD = """import os


class Basket:
    def __init__(self, items):
        self.items = items
        self.count = len(items)

    def total(self):
        prices = [item.price for item in self.items]
        return sum(prices)

    def mean(self):
        prices = [item.price for item in self.items]
        return sum(prices) / len(prices)
"""
NEW = OLD.replace("        return sum(prices)\n", "        return round(sum(prices), 2)\n", 1)
HUNK = "\n".join(
    (
        "@@ -7,7 +7,7 @@",
        "         self.count = len(items)",
        " ",
        "     def total(self):",
        "         prices = [item.price for item in self.items]",
        "-        return sum(prices)",
        "+        return round(sum(prices), 2)",
        " ",
        "     def mean(self):",
        "",
    )
)
DIFF = f"--- a/shop/basket.py\n+++ b/shop/basket.py\n{HUNK}"


def block(search: str, text: str) -> str:
    return f"shop/basket.py\n<<<<<<< SEARCH\n{search}=======\n{text}>>>>>>> REPLACE\n"


def diff(*hunks: str) -> str:
    return "--- a/shop/basket.py\n+++ b/shop/basket.py\n" + "".join(hunks)


def tried(answer: str, old: str = OLD) -> EditedFiles:
    return put(parse(answer).edits, {"shop/basket.py": old.encode()}.get, ["shop/basket.py"])


def result(answer: str, old: str = OLD) -> str | None:
    made = tried(answer, old).files.get("shop/basket.py")
    return None if made is None else made.decode()


def reason(answer: str, old: str = OLD) -> str:
    return tried(answer, old).rejects[0].reason


@pytest.mark.parametrize(
    ("answer", "rung"),
    [
        (DIFF, EditFit.exact),
        (DIFF.replace("-7,7 +7,7", "-7,9 +7,8"), EditFit.recount),
        (DIFF.replace("-7,7 +7,7", "-90,7 +90,7"), EditFit.realign),
        (DIFF.replace("@@ -7,7 +7,7 @@", "@@ ... @@"), EditFit.realign),
        (DIFF.replace("a/shop/basket.py", "basket.py").replace("b/shop/basket.py", "basket.py"), EditFit.exact),
        (DIFF.replace("\n \n", "\n\n"), EditFit.exact),
        (DIFF.replace("\n", "\r\n"), EditFit.exact),
        (DIFF.replace("\n     ", "\n    "), EditFit.whitespace),
        (DIFF.replace(" self.count = len(items)", " self.count = len(item)"), EditFit.merge),
        (f"Like this:\n\n1. a diff\n\n    ```diff\n    {'    '.join(DIFF.splitlines(True))}    ```\n", EditFit.exact),
        (f"> {'> '.join(DIFF.splitlines(True))}", EditFit.exact),
    ],
)
def test_a_diff_reaches_the_true_content_on_its_rung(answer, rung):
    done = tried(answer)
    assert (done.files.get("shop/basket.py", b""), done.rung) == (NEW.encode(), rung)


def test_a_hunk_indented_otherwise_as_a_whole_is_moved():
    assert result(DIFF.replace("\n     ", "\n ").replace("\n-    ", "\n-").replace("\n+    ", "\n+")) == NEW


PRICES = "-        prices = [item.price for item in self.items]\n+        prices = []\n"


def test_of_two_equal_places_the_number_tells_and_without_it_none_is_taken():
    made = result(diff("@@ -10 +10 @@\n", PRICES))
    assert made is not None
    assert made.split("\n").index("        prices = []") == 9
    assert made.count("prices = []") == 1
    assert reason(diff("@@ @@\n", PRICES)) == "the lines to change are there 2 times (lines 10, 14)"
    assert reason(diff("@@ -11 +11 @@\n", PRICES)) == "the lines to change are there 2 times (lines 10, 14)"


def test_the_other_hunks_of_a_diff_tell_which_of_two_places_is_meant():
    sure = "@@ -106 +106 @@\n-        self.items = items\n+        self.items = list(items)\n"
    made = result(diff(sure, "@@ -110 +110 @@\n", PRICES))
    assert made is not None
    assert made.split("\n")[9] == "        prices = []"
    assert made.count("prices = []") == 1


def test_a_heading_tells_which_of_two_places_is_meant():
    patch = f"*** Begin Patch\n*** Update File: shop/basket.py\n@@ def mean(self):\n{PRICES}*** End Patch\n"
    made = result(patch)
    assert made is not None
    assert made.split("\n")[13] == "        prices = []"
    assert "2 times" in reason(patch.replace(" def mean(self):", ""))


def test_a_removed_line_must_be_there_whatever_else_fits():
    assert "no line 'return total(prices)'" in reason(DIFF.replace("return sum(prices)", "return total(prices)"))
    assert result(DIFF, OLD.replace("return sum(prices)\n", "return sum(prices)  # rounded elsewhere\n")) is None


def test_what_was_applied_before_is_recognised():
    done = tried(DIFF, NEW)
    assert done.files == {}
    assert done.rejects[0].already


def test_hunks_that_were_applied_before_are_left_out_if_others_are_new():
    first = "@@ -1,4 +1,5 @@\n import os\n+import sys\n \n \n class Basket:\n     def __init__(self, items):\n"
    both = DIFF.replace("@@ -7", first + "@@ -7")
    assert result(both, NEW) == NEW.replace("import os\n", "import os\nimport sys\n")


def test_a_line_that_is_inserted_beside_a_missing_one_is_not_guessed():
    """Nothing shows whether it belongs before or after the line that the diff omits."""
    lines = "         self.items = items\n+        self.seen = 0\n \n     def total(self):\n"
    more = "         prices = [item.price for item in self.items]\n         return sum(prices)\n"
    assert result(diff("@@ @@\n", lines, more)) is None


def test_uneven_indentation_is_taken_back_only_where_one_way_gives_a_program():
    search = "import os\n\n\nclass Basket:\ndef __init__(self, items):\n"
    text = search.replace("def __init__", "def empty(self):\n    return 0\n\ndef __init__")
    made = result(block(search, text))
    assert made is not None
    assert "class Basket:\n    def empty(self):\n        return 0\n\n    def __init__" in made
    either = "def f():\nreturn 1\n\ny = 2\n"
    assert result(block(either, either.replace("1\n", "1\nx = 3\n")), "def f():\n    return 1\n\ny = 2\n") is None


def test_left_out_context_is_bridged():
    search = "    def __init__(self, items):\n...\n        return sum(prices)\n"
    assert result(block(search, search.replace("sum(prices)", "round(sum(prices), 2)"))) == NEW


def test_what_would_be_left_out_of_the_new_lines_is_refused():
    search = "    def total(self):\n        prices = [item.price for item in self.items]\n        return sum(prices)\n"
    text = "    def total(self):\n        # ... rest of the method unchanged ...\n"
    assert "leave something out" in reason(block(search, text))


def test_two_parts_that_change_the_same_line_are_refused():
    assert "same lines" in reason(diff(HUNK, HUNK))


@pytest.mark.parametrize(
    ("search", "text"),
    [
        pytest.param(
            "        self.items = items\n        self.count = len(items)\n",
            "        self.items = items\n",
            id="last line",
        ),
        pytest.param("import os\n\n\nclass Basket:\n", "class Basket:\n", id="first lines"),
        pytest.param(
            "import os\n\n\nclass Basket:\n    def __init__(self, items):\n        self.items = items\n"
            "        self.count = len(items)\n",
            "class Basket:\n    def __init__(self, items):\n        self.items = items\n",
            id="both ends",
        ),
        pytest.param(
            "        return sum(prices)\n\n    def mean(self):\n        prices = [item.price for item in self.items]\n"
            "        return sum(prices) / len(prices)\n",
            "        return sum(prices)\n",
            id="all that follows",
        ),
    ],
)
def test_an_exact_unique_block_may_delete_its_first_and_last_lines(search, text):
    done = tried(block(search, text))
    assert done.rejects == ()
    assert result(block(search, text)) == OLD.replace(search, text)
    assert done.rung is EditFit.exact


def test_an_exact_unique_block_is_applied_where_its_result_also_stands_half_beside_it():
    """`b a` stands before the place and in it. This does not show whether the edit was made."""
    old = "b = 2\na = 1\nb = 2\na = 1\n"
    assert result(block("a = 1\nb = 2\na = 1\n", "b = 2\na = 1\n"), old) == "b = 2\nb = 2\na = 1\n"


def test_an_envelope_may_end_with_deleted_lines():
    answer = (
        "*** Begin Patch\n*** Update File: shop/basket.py\n@@\n         self.items = items\n"
        "-        self.count = len(items)\n*** End Patch\n"
    )
    assert result(answer) == OLD.replace("        self.count = len(items)\n", "")


def test_a_block_whose_added_lines_stand_there_already_is_refused():
    search = "        self.items = items\n"
    done = tried(block(search, f"{search}        self.count = len(items)\n"))
    assert done.rejects[0].already
