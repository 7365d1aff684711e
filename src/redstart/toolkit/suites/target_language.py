"""What the targets of a run are written in, where only a command and its report tell of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import PurePosixPath

from redstart.core.change import Snapshot
from redstart.core.languages import ALTERABLE, JAVASCRIPT, PYTHON, language_of_file, language_of_test
from redstart.core.suite import Suite
from redstart.ports.store.port import Trees
from redstart.toolkit.base.code_files import Read
from redstart.toolkit.suites.command_files import CommandFiles
from redstart.toolkit.suites.detect import is_python_test
from redstart.toolkit.suites.node_detect import is_node_test

UNKNOWN = "another language"
_SUFFIX = re.compile(r"(?: \([^()]*\))?(?: #\d+)?$")
"""What an id has at its end where several tests of a report would share it."""
_DEFINES = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
_TITLE = re.compile(rb"""\b(?:it|test|describe|suite|specify|context)(?:\.\w+)*\(\s*(["'`])(.+?)\1""")


def foreign_language(suite: Suite, trees: Trees, tree: Snapshot, ids: Sequence[str]) -> str:
    """The language of these tests where Redstart cannot alter them; empty for Python and JavaScript.

    Tests that a command runs are in Python or JavaScript where their ids lead to test files of these. Otherwise the
    programs that the command starts tell the language, then the tree's test files.
    """
    if not suite.junit:
        return ""
    paths, read = trees.files(tree), partial(trees.read, tree)
    tests = _AlterableTests(suite, paths, read)
    if ids and all(tests.hold(one) for one in ids):
        return ""
    started = CommandFiles(suite.command, suite.folder, paths, read).languages
    other = [name for name in started if name not in ALTERABLE]
    if other:
        return other[0]
    counted = Counter(name for path in paths if (name := language_of_test(path)))
    if counted:
        return counted.most_common(1)[0][0]
    return "" if started else UNKNOWN


def has_tests(paths: Iterable[str]) -> bool:
    """Whether a tree has a file that is a test by its name, in any language."""
    return any(is_python_test(path) or is_node_test(path) or language_of_test(path) for path in paths)


class _AlterableTests:
    """The test files in Python and JavaScript, by what a report calls their tests."""

    def __init__(self, suite: Suite, paths: Collection[str], read: Read) -> None:
        self._suite, self._read = suite, read
        self._python = [path for path in paths if language_of_file(path) == PYTHON and is_python_test(path)]
        self._scripts = [path for path in paths if language_of_file(path) == JAVASCRIPT and is_node_test(path)]

    def hold(self, id_: str) -> bool:
        owner, _, name = _SUFFIX.sub("", id_).rpartition("::")
        if owner in self._files:
            return True
        words = set(re.split(r"[./:\\]", owner))
        if words & self._modules or words & self._names or name.partition("[")[0] in self._names:
            return True
        return any(name.endswith(title) for title in self._titles)

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self._suite.as_shown(path) for path in (*self._python, *self._scripts))

    @cached_property
    def _modules(self) -> frozenset[str]:
        return frozenset(PurePosixPath(path).stem for path in self._python) - {"conftest", "__init__"}

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name.decode() for path in self._python for name in _DEFINES.findall(self._read(path) or b""))

    @cached_property
    def _titles(self) -> frozenset[str]:
        return frozenset(self._titles_of(self._scripts))

    def _titles_of(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            for _, title in _TITLE.findall(self._read(path) or b""):
                yield title.decode(errors="replace")
