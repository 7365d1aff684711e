"""Counts the tests of a file from its text, because a file that cannot be imported yet reports no tests."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.report import ReproductionResult
from redstart.toolkit.languages.registry import language_of_file


def with_count(found: ReproductionResult, files: Mapping[str, bytes | None]) -> ReproductionResult:
    """Return the reproduction with the number of tests that were written for it."""
    if found.trouble:
        return found
    return found.model_copy(update={"written": max(count_tests(files), found.targets.count)})


def count_tests(files: Mapping[str, bytes | None]) -> int:
    """Count the tests of all these files. Each written-out set of parameters counts as one test."""
    return sum(_count(path, (data or b"").decode(errors="replace")) for path, data in files.items())


def _count(path: str, text: str) -> int:
    language = language_of_file(path)
    return language.count_cases(text) if language else 0
