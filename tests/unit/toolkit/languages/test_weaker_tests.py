"""A test asserts less if an assertion is gone or demands less of the same value."""

from __future__ import annotations

import pytest

from redstart.toolkit.languages.python.weaker_tests import explain_weaker_test

TEST = "def test_a():\n    result = f(1)\n    assert result == 3\n    assert result.name == 'x'\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assert result == 3", "assert result is not None"),
        ("assert result == 3", "assert result in (3, 4)"),
        ("assert result == 3", "assert result >= 3"),
        ("assert result == 3", "assert result"),
        ("assert result == 3", "assert isinstance(result, int)"),
        ("assert result == 3", "assert result == pytest.approx(3)"),
        ("assert result == 3", "assert result == 3 or True"),
        ("assert result == 3", "pass"),
    ],
)
def test_looser_assertion_is_weaker(old: str, new: str):
    assert "assert" in explain_weaker_test(TEST, TEST.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assert result == 3", "assert result == 4"),
        ("assert result == 3", "assert 3 == result"),
        ("assert result == 3", "assert_result(result, 3)"),
        ("f(1)", "f(1, 2)"),
        ("assert result == 3", "assert result == 3\n    assert result"),
    ],
)
def test_other_edits_are_not_weaker(old: str, new: str):
    assert explain_weaker_test(TEST, TEST.replace(old, new)) == ""


def test_methods_of_unittest_and_expected_exceptions_are_compared():
    old = "def test_a(self):\n    self.assertEqual(f(1), 3)\n    with self.assertRaises(ValueError):\n        f(2)\n"
    assert "self.assertTrue(f(1))" in explain_weaker_test(old, old.replace("assertEqual(f(1), 3)", "assertTrue(f(1))"))
    assert "Exception" in explain_weaker_test(old, old.replace("ValueError", "Exception"))
    assert explain_weaker_test(old, old.replace("f(2)", "f(3)")) == ""
