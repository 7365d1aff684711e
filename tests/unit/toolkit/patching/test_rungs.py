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


def apply_answer(answer: str, old: str = OLD) -> EditedFiles:
    return put(parse(answer).edits, {"shop/basket.py": old.encode()}.get, ["shop/basket.py"])


def get_result(answer: str, old: str = OLD) -> str | None:
    content = apply_answer(answer, old).files.get("shop/basket.py")
    return None if content is None else content.decode()


def get_reason(answer: str, old: str = OLD) -> str:
    return apply_answer(answer, old).rejects[0].reason


@pytest.mark.parametrize(
    ("answer", "expected_fit"),
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
def test_diff_reaches_the_correct_content_on_its_rung(answer, expected_fit):
    edited_files = apply_answer(answer)
    assert (edited_files.files.get("shop/basket.py", b""), edited_files.worst_fit) == (NEW.encode(), expected_fit)


def test_hunk_with_a_uniform_indent_shift_is_realigned():
    assert get_result(DIFF.replace("\n     ", "\n ").replace("\n-    ", "\n-").replace("\n+    ", "\n+")) == NEW


PRICES = "-        prices = [item.price for item in self.items]\n+        prices = []\n"


def test_line_number_decides_between_two_equal_places():
    content = get_result(diff("@@ -10 +10 @@\n", PRICES))
    assert content is not None
    assert content.split("\n").index("        prices = []") == 9
    assert content.count("prices = []") == 1
    assert get_reason(diff("@@ @@\n", PRICES)) == "the lines to change are there 2 times (lines 10, 14)"
    assert get_reason(diff("@@ -11 +11 @@\n", PRICES)) == "the lines to change are there 2 times (lines 10, 14)"


def test_other_hunks_decide_between_two_equal_places():
    unique_hunk = "@@ -106 +106 @@\n-        self.items = items\n+        self.items = list(items)\n"
    content = get_result(diff(unique_hunk, "@@ -110 +110 @@\n", PRICES))
    assert content is not None
    assert content.split("\n")[9] == "        prices = []"
    assert content.count("prices = []") == 1


def test_heading_decides_between_two_equal_places():
    patch = f"*** Begin Patch\n*** Update File: shop/basket.py\n@@ def mean(self):\n{PRICES}*** End Patch\n"
    content = get_result(patch)
    assert content is not None
    assert content.split("\n")[13] == "        prices = []"
    assert "2 times" in get_reason(patch.replace(" def mean(self):", ""))


def test_removed_line_must_exist():
    assert "no line 'return total(prices)'" in get_reason(DIFF.replace("return sum(prices)", "return total(prices)"))
    assert get_result(DIFF, OLD.replace("return sum(prices)\n", "return sum(prices)  # rounded elsewhere\n")) is None


def test_diff_already_applied_is_recognized():
    edited_files = apply_answer(DIFF, NEW)
    assert edited_files.files == {}
    assert edited_files.rejects[0].already


def test_hunks_already_applied_are_skipped_if_others_are_new():
    new_hunk = "@@ -1,4 +1,5 @@\n import os\n+import sys\n \n \n class Basket:\n     def __init__(self, items):\n"
    combined_diff = DIFF.replace("@@ -7", new_hunk + "@@ -7")
    assert get_result(combined_diff, NEW) == NEW.replace("import os\n", "import os\nimport sys\n")


def test_position_of_a_line_beside_a_missing_line_is_not_guessed():
    """Nothing shows whether it belongs before or after the line that the diff omits."""
    lines = "         self.items = items\n+        self.seen = 0\n \n     def total(self):\n"
    later_lines = "         prices = [item.price for item in self.items]\n         return sum(prices)\n"
    assert get_result(diff("@@ @@\n", lines, later_lines)) is None


def test_uneven_indentation_is_repaired_only_if_one_way_is_valid():
    search = "import os\n\n\nclass Basket:\ndef __init__(self, items):\n"
    text = search.replace("def __init__", "def empty(self):\n    return 0\n\ndef __init__")
    content = get_result(block(search, text))
    assert content is not None
    assert "class Basket:\n    def empty(self):\n        return 0\n\n    def __init__" in content
    either = "def f():\nreturn 1\n\ny = 2\n"
    assert get_result(block(either, either.replace("1\n", "1\nx = 3\n")), "def f():\n    return 1\n\ny = 2\n") is None


def test_omitted_context_is_bridged():
    search = "    def __init__(self, items):\n...\n        return sum(prices)\n"
    assert get_result(block(search, search.replace("sum(prices)", "round(sum(prices), 2)"))) == NEW


def test_omission_in_the_new_lines_is_refused():
    search = "    def total(self):\n        prices = [item.price for item in self.items]\n        return sum(prices)\n"
    text = "    def total(self):\n        # ... rest of the method unchanged ...\n"
    assert "leave something out" in get_reason(block(search, text))


def test_two_hunks_that_change_the_same_line_are_refused():
    assert "same lines" in get_reason(diff(HUNK, HUNK))


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
def test_exact_unique_block_may_delete_its_first_and_last_lines(search, text):
    edited_files = apply_answer(block(search, text))
    assert edited_files.rejects == ()
    assert get_result(block(search, text)) == OLD.replace(search, text)
    assert edited_files.worst_fit is EditFit.exact


def test_exact_unique_block_is_applied_beside_part_of_its_result():
    """`b a` stands before the place and in it. This does not show whether the edit was made."""
    old = "b = 2\na = 1\nb = 2\na = 1\n"
    assert get_result(block("a = 1\nb = 2\na = 1\n", "b = 2\na = 1\n"), old) == "b = 2\nb = 2\na = 1\n"


def test_envelope_may_end_with_deleted_lines():
    answer = (
        "*** Begin Patch\n*** Update File: shop/basket.py\n@@\n         self.items = items\n"
        "-        self.count = len(items)\n*** End Patch\n"
    )
    assert get_result(answer) == OLD.replace("        self.count = len(items)\n", "")


def test_block_whose_added_lines_already_exist_is_refused():
    search = "        self.items = items\n"
    edited_files = apply_answer(block(search, f"{search}        self.count = len(items)\n"))
    assert edited_files.rejects[0].already
