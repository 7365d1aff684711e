"""A rewritten file keeps its comments and docstrings where the code is the same, and never gets other code."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redstart.core.change import Edit, EditFit, EditKind, EditRejection
from redstart.toolkit.languages.python.documentation import dump_code
from redstart.toolkit.languages.python.edited_code import restore_documentation
from redstart.toolkit.patching.fitting.edit_file import FittedFile, MisfitKind, apply_edit

PROGRAM = '''# Licensed as it is.
"""Carts."""

import math  # for floor

RATE = 3
"""In percent."""


# The shop's own carts.
class Cart:
    """Holds prices."""

    def total(self, prices):
        """Return the sum."""
        # Cents get lost otherwise.
        amount = sum(prices)  # a float
        return math.floor(amount)

    def mean(self, prices):
        """Return the mean."""
        # TODO: empty carts
        # return 0
        return self.total(prices) / len(
            prices,  # never empty
        )


"""
The end.
"""
'''
BARE = """import math

RATE = 3


class Cart:
    def total(self, prices):
        amount = sum(prices)
        return math.floor(amount)

    def mean(self, prices):
        return self.total(prices) / len(prices,)
"""


def restore(new: str, old: str = PROGRAM) -> str:
    return "\n".join(restore_documentation(old.split("\n"), new.split("\n")))


def test_all_documentation_comes_back_if_the_code_is_the_same():
    assert restore(BARE) == PROGRAM


def test_only_the_changed_statement_loses_its_comment():
    answer = BARE.replace("return math.floor(amount)", "return math.ceil(amount)").replace("sum(prices)", "max(prices)")
    expected = PROGRAM.replace("math.floor(amount)", "math.ceil(amount)").replace(
        "        # Cents get lost otherwise.\n        amount = sum(prices)  # a float\n",
        "        amount = max(prices)\n",
    )
    assert restore(answer) == expected


def test_docstring_of_a_definition_with_another_head_stays_away():
    answer = BARE.replace("def total(self, prices)", "def total(self, prices, tax)")
    assert "Return the sum" not in restore(answer)
    assert "Return the mean" in restore(answer)


def test_documentation_of_the_answer_stays():
    answer = BARE.replace("def mean(self, prices):\n", 'def mean(self, prices):\n        """Divide."""\n').replace(
        "amount = sum(prices)\n", "amount = sum(prices)  # in euros\n"
    )
    restored = restore(answer)
    assert "Divide." in restored
    assert "Return the mean" not in restored
    assert "# in euros" in restored
    assert "# a float" not in restored


def test_comment_that_was_deleted_with_a_change_stays_away():
    answer = PROGRAM.replace("        # Cents get lost otherwise.\n", "").replace("math.floor(", "math.ceil(")
    assert restore(answer) == answer


def test_unchanged_function_gets_its_documentation_back_beside_a_changed_one():
    answer = (
        PROGRAM.replace("        # Cents get lost otherwise.\n", "")
        .replace('        """Return the sum."""\n', "")
        .replace("        return self.total(prices)", "        return 2 * self.total(prices)")
    )
    assert restore(answer) == PROGRAM.replace("return self.total(prices)", "return 2 * self.total(prices)")


def test_comment_that_became_code_does_not_come_back():
    answer = BARE.replace("        return self", "        if not prices:\n            return 0\n        return self")
    restored = restore(answer)
    assert "# TODO: empty carts" in restored
    assert "# return 0" not in restored


def test_text_at_the_end_survives_a_change_of_the_last_statement():
    answer = BARE.replace("/ len(prices,)", "// len(prices)")
    assert restore(answer).endswith('// len(prices)\n\n\n"""\nThe end.\n"""\n')


@pytest.mark.parametrize("cut", ["    def mean", "        return self"])
def test_text_at_the_end_does_not_hide_that_an_answer_is_cut_off(cut):
    answer = BARE.partition(cut)[0]
    assert "The end." not in restore(answer)


def test_answer_that_only_leaves_documentation_out_changes_nothing():
    outcome = apply_edit(Edit(kind=EditKind.whole, path="a.py", text=BARE), "a.py", PROGRAM.encode())
    assert isinstance(outcome, EditRejection)
    assert getattr(outcome, "kind", None) is MisfitKind.unchanged


def test_fix_without_documentation_is_a_change_of_one_line():
    answer = BARE.replace("floor", "ceil")
    outcome = apply_edit(Edit(kind=EditKind.whole, path="a.py", text=answer), "a.py", PROGRAM.encode())
    assert outcome == FittedFile(PROGRAM.replace("math.floor", "math.ceil").encode(), EditFit.exact)


def test_what_is_no_program_stays_as_it_is():
    assert restore("def f(:\n") == "def f(:\n"
    assert restore(BARE, old="def f(:\n# why\n") == BARE


TEXTS = st.sampled_from(["", "# why", "# x = 1", "# a\n\n# b", '"""What."""', '"""One\n\n# two\n"""', "\n# c\n"])
CODE = st.sampled_from(["x = 1", "x += 1", "y = (\n    x,\n    2,\n)", "for n in y:\n    x = n", "print(x, '#')"])


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a documented program and an answer that changes it and keeps some of the documentation."""
    old: list[str] = []
    new: list[str] = []
    for number in range(draw(st.integers(0, 4))):
        text, docstring, code = draw(TEXTS), draw(TEXTS), draw(CODE)
        tail = draw(st.sampled_from(["", "  # tail"]))
        function = f"def f{number}(x):\n{{}}    return x{{}}".format
        keeps = draw(st.booleans())
        answered = draw(st.sampled_from([code, code, "x = 7"]))
        old += [text, code, function(_indent(docstring), tail)]
        new += [text if keeps else "", answered, function(_indent(docstring) if keeps else "", tail if keeps else "")]
    return "\n".join([*old, draw(TEXTS), ""]), "\n".join([*new, ""])


def _indent(text: str) -> str:
    return "".join(f"    {line}\n" if line.strip() else "\n" for line in text.split("\n")) if text else ""


@pytest.mark.slow
@settings(deadline=None)
@given(programs())
def test_code_of_an_answer_is_never_changed(pair):
    old, answer = pair
    restored = restore(answer, old)
    assert dump_code(ast.parse(restored)) == dump_code(ast.parse(answer))
    assert restore(restored, old) == restored
    assert restore(old, old) == old


@pytest.mark.slow
@settings(deadline=None)
@given(programs())
def test_comments_and_strings_of_an_answer_stay(pair):
    old, answer = pair
    restored = restore(answer, old).split("\n")
    assert [line for line in answer.split("\n") if "#" in line and line not in restored] == []
