"""Finds the language of a run's targets if only a command and its report identify them."""

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
from redstart.toolkit.languages.registry import language_of_test
from redstart.toolkit.suites.detection.command_files import CommandFiles

UNKNOWN = "another language"
_SUFFIX = re.compile(r"(?: \([^()]*\))?(?: #\d+)?$")
"""The suffix of an ID that several tests of a report would otherwise share."""


def foreign_language(suite: Suite, trees: Trees, tree: Snapshot, ids: Sequence[str]) -> str:
    """Find the language of these tests if Redstart cannot alter them. Empty if it can.

    It can alter the tests of a command if their IDs lead to test files in alterable languages. Otherwise the programs
    that the command starts determine the language, then the tree's test files.
    """
    if not suite.junit:
        return ""
    paths, read = trees.files(tree), partial(trees.read, tree)
    tests = _AlterableTests(suite, paths, read)
    if ids and all(tests.hold(id_) for id_ in ids):
        return ""
    started = CommandFiles(suite.command, suite.folder, paths, read).languages
    other = [language.name for language in started if not language.can_alter_tests]
    if other:
        return other[0]
    languages = filter(None, map(language_of_test, paths))
    counted = Counter(language.name for language in languages if not language.can_alter_tests)
    if counted:
        return counted.most_common(1)[0][0]
    return "" if started else UNKNOWN


def has_tests(paths: Iterable[str]) -> bool:
    """Whether a tree has a file that is a test by name, in any language."""
    return any(language_of_test(path) for path in paths)


class _AlterableTests:
    """The test files in languages whose tests Redstart can alter, with the test names that a report may use."""

    def __init__(self, suite: Suite, paths: Collection[str], read: Read) -> None:
        self._read = read
        found = {path: language for path in paths if (language := language_of_test(path)) and language.can_alter_tests}
        self._languages = {path: item for path, item in found.items() if path.endswith(item.suffixes)}
        self._files = frozenset(map(suite.as_shown, self._languages))

    def hold(self, id_: str) -> bool:
        owner, _, name = _SUFFIX.sub("", id_).rpartition("::")
        if owner in self._files:
            return True
        words = {*re.split(r"[./:\\]", owner), name.partition("[")[0]}
        return any(words & names.words or name.endswith(names.endings) for names in self._names)

    @cached_property
    def _names(self) -> tuple[ReportNames, ...]:
        return tuple(language.report_names(path, self._read(path) or b"") for path, language in self._languages.items())
