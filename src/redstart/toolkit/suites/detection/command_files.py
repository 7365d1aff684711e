"""Finds the files of the tree that a test command starts from. Whoever edits them controls the test results."""

from __future__ import annotations

import re
import shlex
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import escape
from pathlib import PurePosixPath
from posixpath import join, normpath

from redstart.toolkit.base.code_files import Read
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import language_of_file, language_of_test, languages
from redstart.toolkit.suites.detection.command import end_of_start

_BUILDERS = {
    ("make", "gmake", "bmake", "remake"): ("makefile", "gnumakefile", "bsdmakefile", "makefile.*", "*.mk", "*.mak"),
    ("just",): ("justfile", ".justfile", "*.just"),
    ("task", "go-task"): ("taskfile*.yml", "taskfile*.yaml"),
    ("bazel", "bazelisk", "buck2"): ("build", "build.bazel", "workspace*", "module.bazel", "*.bzl", ".bazelrc"),
    ("invoke", "inv"): ("tasks.py",),
    ("doit",): ("dodo.py",),
    ("scons",): ("sconstruct", "sconscript"),
}
"""Programs that read their tasks from a file that the command need not name. File names are in lower case."""
_LIKE_A_TEST = re.compile(r"(?:^|[_.-])(?:run)?(?:tests?|checks?|specs?|suites?|ci)(?:[_.-]|$)", re.IGNORECASE)
"""The name of a test script that another script names. Other files may belong to the program under test."""
_WORD = re.compile(r"[\w./+-]+")
_PROGRAM = re.compile(r"(?:^|[;&|(`])[ \t@+-]*(?:\w+=\S*[ \t]+)*([\w./+-]+)", re.MULTILINE)
"""The first word of each command in a script or recipe."""
_LARGEST = 256 << 10
"""How many bytes of a script are examined."""


class CommandFiles:
    """The files of one tree that a test command starts from. Paths are the tree's; the command runs in `folder`."""

    def __init__(self, command: Sequence[str], folder: str, paths: Collection[str], read: Read) -> None:
        self._folder, self._paths, self._read = folder, frozenset(paths), read
        self._words = tuple(_spread(command))
        self._build_names = tuple(self._names_of_build_files())
        self.build = tuple(sorted(path for path in self._paths if self._is_build_file(path)))
        """Files that define how the tests are built and started."""
        self.named = () if end_of_start(command, "pytest", "py.test") else tuple(sorted(self._followed()))
        """Files that the command names, and the test scripts that those name in turn."""

    @property
    def globs(self) -> tuple[str, ...]:
        """All these files and every file that would count if it existed: a `GNUmakefile` overrides a `Makefile`."""
        built = (glob for name in self._build_names for glob in (name, f"*/{name}"))
        return tuple(dict.fromkeys((*(escape(path) for path in self.named), *built)))

    @property
    def languages(self) -> tuple[Language, ...]:
        """The languages whose programs the command starts, directly or in a script."""
        scripts = (self._text(path) for path in (*self.named, *self.build))
        words = (*self._words, *(word for text in scripts for word in _PROGRAM.findall(text)))
        started = {PurePosixPath(word).name for word in words}
        # Languages whose tests cannot be altered come first: the command is meant for those.
        known = sorted(languages(), key=lambda language: language.can_alter_tests)
        found = [language for language in known if not language.can_alter_tests and _starts(language, started)]
        found += [language for path in self.named if (language := language_of_file(path))]
        found += [language for language in known if language.can_alter_tests and _starts(language, started)]
        return tuple(dict.fromkeys(found))

    def _is_build_file(self, path: str) -> bool:
        name = PurePosixPath(path).name.casefold()
        return any(fnmatchcase(name, glob.casefold()) for glob in self._build_names)

    def _names_of_build_files(self) -> Iterator[str]:
        started = {PurePosixPath(word).name for word in self._words}
        for programs, names in _BUILDERS.items():
            if not started.isdisjoint(programs):
                yield from names
        for language in languages():
            if _starts(language, started):
                yield from language.build_files

    def _followed(self) -> set[str]:
        found = {path for word in self._words for path in self._in_tree(word)}
        found |= {path for path in self._modules() if path in self._paths}
        waiting = deque((*found, *self.build))
        while waiting:
            for word in _WORD.findall(self._text(waiting.popleft())):
                for path in self._in_tree(word):
                    is_test = _LIKE_A_TEST.search(PurePosixPath(path).name) or language_of_test(path)
                    if is_test and path not in found:
                        found.add(path)
                        waiting.append(path)
        return found

    def _in_tree(self, word: str) -> Iterator[str]:
        """Find the file that a word means in the command's directory. An option's value counts as a word."""
        for text in {word, word.partition("=")[2]} - {""}:
            path = normpath(join(self._folder, text))
            if path in self._paths:
                yield path

    def _modules(self) -> Iterator[str]:
        """List the files of `python -m package.module`."""
        for option, name in zip(self._words, self._words[1:], strict=False):
            if option == "-m":
                start = join(self._folder, *name.split("."))
                yield from (path for language in languages() for path in language.module_files(start))

    def _text(self, path: str) -> str:
        return (self._read(path) or b"")[:_LARGEST].decode(errors="replace")


def _starts(language: Language, started: Collection[str]) -> bool:
    return any(re.fullmatch(program, name) for program in language.programs for name in started)


def _spread(command: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command and those of a command line that it passes to a shell."""
    for word in command:
        yield word
        if any(blank in word for blank in " \t\n;&|"):
            try:
                yield from shlex.split(re.sub(r"[;&|()<>]+", " ", word))
            except ValueError:  # an open quote: the pieces still tell something
                yield from word.split()
