"""Tests that lie where no policy protects them: doctests, tests in the code's own files, and files of other kinds."""

from __future__ import annotations

from collections.abc import Collection

from redstart.toolkit.honesty.verdict.hunks import reader_of


def tests_lost(path: str, before: bytes | None, after: bytes | None, ids: Collection[str]) -> str:
    """In a sentence, which of a file's tests a change would alter; empty where it leaves them as they are.

    `ids` are those that the runner collected from this file at the baseline. Where nobody can tell the tests from the
    code, all of the file must stay.
    """
    if not ids or before is None:
        return ""
    reader = reader_of(path)
    if after is None or reader is None:
        return f"tests are collected from {path}: it is not the code's to change"
    return reader.tests_lost(before, after, ids)
