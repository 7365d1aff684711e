"""Add new test files to a command that names the files to run."""

from __future__ import annotations

from collections.abc import Iterable

from redstart.core.run import Suite
from redstart.toolkit.languages.registry import is_test_support
from redstart.toolkit.suites.runner import get_suite_runner


def include_tests(suite: Suite, files: Iterable[str]) -> tuple[str, ...]:
    """Add these files of the snapshot to the suite's command. Empty if the command runs them without a change.

    A command that only starts a runner, such as `make test`, stays unchanged: nothing can be added to it.
    """
    shown_paths = [suite.to_runner_path(path) for path in sorted(files) if not is_test_support(path)]
    runner = get_suite_runner(suite)
    added_words = runner.list_added_arguments(suite, shown_paths) if runner and suite.command else []
    return (*suite.command, *added_words) if added_words else ()
