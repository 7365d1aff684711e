"""Count the tests of a file from its text, because a file that cannot be imported yet reports no tests."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.report import ReproductionResult
from redstart.toolkit.languages.registry import find_file_language


def with_count(result: ReproductionResult, files: Mapping[str, bytes | None]) -> ReproductionResult:
    """Return the reproduction with the number of tests that were written for it."""
    if result.trouble:
        return result
    return result.model_copy(update={"written": max(count_tests(files), result.targets.count)})


def count_tests(files: Mapping[str, bytes | None]) -> int:
    """Count the tests of all these files. Each written-out set of parameters counts as one test."""
    return sum(_count(path, (data or b"").decode(errors="replace")) for path, data in files.items())


def _count(path: str, text: str) -> int:
    language = find_file_language(path)
    return language.count_cases(text) if language else 0
