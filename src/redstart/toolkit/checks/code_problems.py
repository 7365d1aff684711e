"""The problems of code that a patch may not add: what the linters find, and files that cannot be parsed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from redstart.core.finding import Finding
from redstart.toolkit.checks.audit import lint
from redstart.toolkit.checks.syntax import find_syntax_errors


def find_code_problems(files: Mapping[str, bytes | None]) -> list[Finding]:
    """Find the problems of these files. A file that does not exist (None) has none. Raises as `lint` does."""
    existing = {path: text for path, text in files.items() if text is not None}
    return [*lint(existing), *find_syntax_errors(existing)]


def has_more_problems(before: Mapping[str, bytes | None], after: Mapping[str, bytes | None]) -> bool:
    """Return whether a rule has more findings in a file of `after` than in the same file of `before`.

    Only the files of `after` are compared. A finding that moved, or whose line changed otherwise, is not one more.
    """
    counts = [
        Counter((finding.path, finding.rule) for finding in find_code_problems(files))
        for files in ({path: before.get(path) for path in after}, after)
    ]
    return not counts[1] <= counts[0]
