"""Tests in a Rust source file: changes to them are detected, whatever the text around them looks like."""

from __future__ import annotations

import pytest

from redstart.toolkit.honesty.verdict.inline_tests import find_changed_inline_tests

CODE = "pub fn total(price: i32, count: i32) -> i32 { price + count }\n"
TESTS = """
#[cfg(test)]
mod tests {
    use super::*;
    // a brace that is none: }
    const OPEN: char = '{';
    const RAW: &str = r#"}" still inside"#;

    #[test]
    fn totals() { assert_eq!(total(2, 3), 6, "not {}", OPEN); }
}
"""


def is_changed(before: str | None, after: str | None, path: str = "src/lib.rs") -> bool:
    files = ({path: None if text is None else text.encode()} for text in (before, after))
    return bool(list(find_changed_inline_tests(*files)))


@pytest.mark.parametrize(
    "after",
    [
        CODE + TESTS.replace("6", "5"),
        CODE,
        CODE + TESTS.replace("    fn totals", "    #[ignore]\n    fn totals"),
        None,
    ],
    ids=["expectation", "gone", "ignored", "file gone"],
)
def test_changed_test_is_detected(after):
    assert is_changed(CODE + TESTS, after)


@pytest.mark.parametrize(
    "after",
    [
        CODE.replace("+", "*") + TESTS,
        CODE.replace("+", "*") + "\n\nfn more() {}\n" + TESTS,
        CODE + TESTS + "\n#[test]\nfn one_more() { assert!(true); }\n",
        TESTS + CODE.replace("+", "*"),
    ],
    ids=["fix", "function added", "test added", "moved"],
)
def test_fix_beside_the_tests_does_not_change_them(after):
    assert not is_changed(CODE + TESTS, after)


def test_single_test_functions_count_too():
    old = "#[tokio::test]\nasync fn totals() { assert_eq!(total(2, 3), 6); }\n"
    assert is_changed(CODE + old, CODE + old.replace("6", "5"))


def test_only_rust_has_inline_tests():
    assert not is_changed(CODE + TESTS, CODE, path="src/lib.c")
    assert not is_changed(None, CODE + TESTS)
