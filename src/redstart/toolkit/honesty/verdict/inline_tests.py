"""Tests in a source file: a change of them is a change of the tests, which a person must approve."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from redstart.toolkit.honesty.tripwires.rules import TripwireHit
from redstart.toolkit.languages.registry import find_file_language

Files = Mapping[str, bytes | None]


def find_changed_inline_tests(before: Files, after: Files) -> Iterator[TripwireHit]:
    """Find source files whose own tests the change alters or removes; new tests do not count."""
    for path, old in before.items():
        language = find_file_language(path)
        if language is None or old is None:
            continue
        if Counter(language.list_inline_tests(old)) - Counter(language.list_inline_tests(after.get(path) or b"")):
            yield TripwireHit(path, 1, "test_changed", "the tests in this file change")
