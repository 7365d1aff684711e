"""New tests are accepted only if they parse and assert something."""

from __future__ import annotations

import pytest

from redstart.toolkit.suites.new_tests.written_tests import drop_incomplete_test, explain_unusable_test


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tests/test_a.py", "def test_a():\n    assert 1\n"),
        ("tests/test_a.py", "def test_a(self):\n    self.assertEqual(1, 1)\n"),
        ("tests/test_a.py", "def test_a():\n    with pytest.raises(ValueError):\n        f()\n"),
        ("tests/conftest.py", "import pytest\n"),
        ("test/a.test.js", "test('a', () => { assert.equal(1, 1); });\n"),
        ("test/a.test.js", "test('a', () => { assert(true); });\n"),
        ("test/a.test.js", "test('a', (t) => { t.assert.ok(1); });\n"),
        ("test/a.test.ts", "test('a', () => { expect(f(1 as number)).toBe(2); });\n"),
    ],
)
def test_valid_test_file_is_accepted(path, text):
    assert explain_unusable_test(path, text) == ""


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("tests/test_a.py", "def test_a():\n    f()\n", "tests/test_a.py asserts nothing"),
        ("tests/test_a.py", "def test_a(:\n", "tests/test_a.py does not parse: invalid syntax (line 1)"),
        ("tests/test_a.py", "a\0b", "tests/test_a.py does not parse: source code string cannot contain null bytes"),
        ("test/a.test.js", "test('a', () => { f('assert'); });\n", "test/a.test.js asserts nothing"),
        ("test/a.test.js", "test('a', () => {\n", "test/a.test.js does not parse (line 1)"),
    ],
)
def test_invalid_test_file_is_refused(path, text, reason):
    assert explain_unusable_test(path, text) == reason


HEAD = "tests/test_a.py\n```python\nimport a\n"
ONE = "\n\ndef test_one():\n    assert a.one() == 1\n"


@pytest.mark.parametrize(
    ("truncated_text", "expected"),
    [
        (f"{HEAD}{ONE}\n\ndef test_two():\n    assert", f"{HEAD}{ONE}```\n"),
        (f"{HEAD}{ONE}\n\nasync def test_two():\n    assert", f"{HEAD}{ONE}```\n"),
        (f"{HEAD}{ONE}\n\n@pytest.mark.parametrize('x', [1,", f"{HEAD}{ONE}```\n"),
        ("a.test.js\n```js\ntest('a', f);\ntest('b', ", "a.test.js\n```js\ntest('a', f);\n```\n"),
    ],
)
def test_truncated_answer_keeps_the_complete_tests(truncated_text, expected):
    assert drop_incomplete_test(truncated_text) == expected


@pytest.mark.parametrize("answer", ["", "no file at all", f"{HEAD}x = 1", f"{HEAD}{ONE}```\n\nb.py\n", f"{ONE}"])
def test_other_truncated_answer_is_unchanged(answer):
    assert drop_incomplete_test(answer) == answer
