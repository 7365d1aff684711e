"""Find the language of a run's targets if only a command and its report identify them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, partial

from redstart.core.change import Snapshot
from redstart.core.suite import Suite
from redstart.ports.store.port.trees import Trees
from redstart.toolkit.base.code_files import Read
from redstart.toolkit.languages.protocol import ReportNames
from redstart.toolkit.languages.registry import find_test_language
from redstart.toolkit.suites.detection.command_files import CommandFiles

UNKNOWN_LANGUAGE = "another language"
_SUFFIX = re.compile(r"(?: \([^()]*\))?(?: #\d+)?$")
"""The suffix of an ID that several tests of a report would otherwise share."""


def find_foreign_language(suite: Suite, trees: Trees, tree: Snapshot, ids: Sequence[str]) -> str:
    """Find the language of these tests if Redstart cannot alter them. Empty if it can.

    It can alter the tests of a command if their IDs lead to test files in alterable languages. Otherwise the programs
    that the command starts determine the language, then the tree's test files.
    """
    if not suite.junit:
        return ""
    paths, read = trees.list_files(tree), partial(trees.read, tree)
    tests = _AlterableTests(suite, paths, read)
    if ids and all(tests.hold(id_) for id_ in ids):
        return ""
    started_languages = CommandFiles(suite.command, suite.folder, paths, read).languages
    foreign = [language.name for language in started_languages if not language.can_alter_tests]
    if foreign:
        return foreign[0]
    languages = filter(None, map(find_test_language, paths))
    counts = Counter(language.name for language in languages if not language.can_alter_tests)
    if counts:
        return counts.most_common(1)[0][0]
    return "" if started_languages else UNKNOWN_LANGUAGE


def has_tests(paths: Iterable[str]) -> bool:
    """Whether a tree has a file that is a test by name, in any language."""
    return any(find_test_language(path) for path in paths)


class _AlterableTests:
    """The test files in languages whose tests Redstart can alter, with the test names that a report may use."""

    def __init__(self, suite: Suite, paths: Collection[str], read: Read) -> None:
        self._read = read
        alterable = {
            path: language for path in paths if (language := find_test_language(path)) and language.can_alter_tests
        }
        self._languages = {path: item for path, item in alterable.items() if path.endswith(item.suffixes)}
        self._files = frozenset(map(suite.to_runner_path, self._languages))

    def hold(self, id_: str) -> bool:
        owner, _, name = _SUFFIX.sub("", id_).rpartition("::")
        if owner in self._files:
            return True
        words = {*re.split(r"[./:\\]", owner), name.partition("[")[0]}
        return any(words & names.names or name.endswith(names.endings) for names in self._names)

    @cached_property
    def _names(self) -> tuple[ReportNames, ...]:
        return tuple(language.report_names(path, self._read(path) or b"") for path, language in self._languages.items())
