"""Which files of a project are its tests, or start them, where only a command tells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import partial
from posixpath import join, normpath

from redstart.app.wire import House
from redstart.core.change import Snapshot
from redstart.core.errors import ConfigError
from redstart.core.run import MOST_TESTS, Suite
from redstart.toolkit.suites.detection.command_files import CommandFiles
from redstart.toolkit.suites.detection.target_language import has_tests

NameTests = Callable[[str], str]
"""Given a sentence that says that no test file is known: a glob of the test files."""


def files_of_tests(
    house: House, base: Snapshot, suite: Suite, given: Sequence[str], name_tests: NameTests | None
) -> tuple[str, ...]:
    """Globs of the files that the suite's command starts from, and of those that the user names as tests.

    Where nothing says which files are the tests of a command that Redstart only reads the report of, `name_tests` is
    asked. Raises `ConfigError` where nobody can be asked, or a glob of the user's matches no file.
    """
    paths = tuple(house.trees.files(base))
    started = CommandFiles(suite.command, suite.folder, paths, partial(house.trees.read, base))
    inside = [path for path in paths if not suite.folder or path.startswith(f"{suite.folder}/")]
    if suite.junit and not (given or started.named or has_tests(inside)):
        what = "no test file is known for this test command"
        if name_tests is None:
            raise ConfigError(what, remedy="name the test files with --tests GLOB")
        given = (name_tests(what),)
    globs = [glob for text in given for glob in _globs(suite.folder, text)]
    if given and not any(fnmatchcase(path.casefold(), glob.casefold()) for glob in globs for path in paths):
        raise ConfigError(f"no file of the project matches --tests {given[0]}", remedy="give a glob of the test files")
    every = tuple(dict.fromkeys((*globs, *started.globs)))
    if len(every) > MOST_TESTS:
        raise ConfigError(
            f"the test command names {len(every)} files; the limit is {MOST_TESTS}",
            remedy="put it into a script, and give that with --test-cmd",
        )
    return every


def _globs(folder: str, text: str) -> list[str]:
    """The glob as paths of the tree have it. A folder stands for all that is in it."""
    plain = normpath(join(folder, text.strip()))
    return [plain, f"{plain}/*", *([plain.replace("**/", "")] if "**/" in plain else [])]
