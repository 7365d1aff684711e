"""Tests that no policy protects by path: doctests, tests in source files, and tests in other kinds of files."""

from __future__ import annotations

from collections.abc import Collection

from redstart.toolkit.honesty.verdict.hunks import get_change_reader


def describe_lost_tests(path: str, before: bytes | None, after: bytes | None, ids: Collection[str]) -> str:
    """Return a sentence that says which of a file's tests a change would alter; empty if it alters none.

    `ids` are the tests that the runner collected from this file at the baseline. If tests and code cannot be told
    apart, the whole file must stay unchanged.
    """
    if not ids or before is None:
        return ""
    reader = get_change_reader(path)
    if after is None or reader is None:
        return f"tests are collected from {path}: it is not the code's to change"
    return reader.describe_lost_tests(before, after, ids)
