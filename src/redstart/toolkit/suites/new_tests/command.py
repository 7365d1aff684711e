"""Adds new test files to a command that names the files to run."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.run import Suite
from redstart.toolkit.languages.registry import is_test_support
from redstart.toolkit.suites.runner import runner_of


def include_tests(suite: Suite, files: Iterable[str]) -> tuple[str, ...]:
    """Add these files of the snapshot to the suite's command. Empty if the command runs them without a change.

    A command that only starts a runner, such as `make test`, stays unchanged: nothing can be added to it.
    """
    shown = [suite.as_shown(path) for path in sorted(files) if not is_test_support(path)]
    runner = runner_of(suite)
    added = runner.added_words(suite, shown) if runner and suite.command else []
    return (*suite.command, *added) if added else ()
