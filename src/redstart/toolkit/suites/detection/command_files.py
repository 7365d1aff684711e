"""Find the files of the tree that a test command starts from. Whoever edits them controls the test results."""

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
from redstart.toolkit.languages.registry import find_file_language, find_test_language, list_languages
from redstart.toolkit.suites.detection.command import count_start_words

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
_MAX_SCRIPT_BYTES = 256 << 10
"""How many bytes of a script are examined."""


class CommandFiles:
    """The files of one tree that a test command starts from. Paths are the tree's; the command runs in `folder`."""

    def __init__(self, command: Sequence[str], folder: str, paths: Collection[str], read: Read) -> None:
        self._folder, self._paths, self._read = folder, frozenset(paths), read
        self._arguments = tuple(_split_words(command))
        self._build_names = tuple(self._iterate_build_names())
        self.build = tuple(sorted(path for path in self._paths if self._is_build_file(path)))
        """Files that define how the tests are built and started."""
        self.named_files = (
            () if count_start_words(command, "pytest", "py.test") else tuple(sorted(self._find_followed()))
        )
        """Files that the command names, and the test scripts that those name in turn."""

    @property
    def globs(self) -> tuple[str, ...]:
        """All these files and every file that would count if it existed: a `GNUmakefile` overrides a `Makefile`."""
        build_globs = (glob for name in self._build_names for glob in (name, f"*/{name}"))
        return tuple(dict.fromkeys((*(escape(path) for path in self.named_files), *build_globs)))

    @property
    def languages(self) -> tuple[Language, ...]:
        """The languages whose programs the command starts, directly or in a script."""
        scripts = (self._read_text(path) for path in (*self.named_files, *self.build))
        words = (*self._arguments, *(word for text in scripts for word in _PROGRAM.findall(text)))
        started_programs = {PurePosixPath(word).name for word in words}
        # Languages whose tests cannot be altered come first: the command is meant for those.
        ordered = sorted(list_languages(), key=lambda language: language.can_alter_tests)
        matches = [
            language for language in ordered if not language.can_alter_tests and _is_started(language, started_programs)
        ]
        matches += [language for path in self.named_files if (language := find_file_language(path))]
        matches += [
            language for language in ordered if language.can_alter_tests and _is_started(language, started_programs)
        ]
        return tuple(dict.fromkeys(matches))

    def _is_build_file(self, path: str) -> bool:
        name = PurePosixPath(path).name.casefold()
        return any(fnmatchcase(name, glob.casefold()) for glob in self._build_names)

    def _iterate_build_names(self) -> Iterator[str]:
        started_programs = {PurePosixPath(word).name for word in self._arguments}
        for programs, names in _BUILDERS.items():
            if not started_programs.isdisjoint(programs):
                yield from names
        for language in list_languages():
            if _is_started(language, started_programs):
                yield from language.build_files

    def _find_followed(self) -> set[str]:
        paths = {path for word in self._arguments for path in self._in_tree(word)}
        paths |= {path for path in self._iterate_module_files() if path in self._paths}
        waiting = deque((*paths, *self.build))
        while waiting:
            for word in _WORD.findall(self._read_text(waiting.popleft())):
                for path in self._in_tree(word):
                    is_test = _LIKE_A_TEST.search(PurePosixPath(path).name) or find_test_language(path)
                    if is_test and path not in paths:
                        paths.add(path)
                        waiting.append(path)
        return paths

    def _in_tree(self, word: str) -> Iterator[str]:
        """Find the file that a word means in the command's directory. An option's value counts as a word."""
        for text in {word, word.partition("=")[2]} - {""}:
            path = normpath(join(self._folder, text))
            if path in self._paths:
                yield path

    def _iterate_module_files(self) -> Iterator[str]:
        """List the files of `python -m package.module`."""
        for option, name in zip(self._arguments, self._arguments[1:], strict=False):
            if option == "-m":
                start = join(self._folder, *name.split("."))
                yield from (path for language in list_languages() for path in language.list_module_files(start))

    def _read_text(self, path: str) -> str:
        return (self._read(path) or b"")[:_MAX_SCRIPT_BYTES].decode(errors="replace")


def _is_started(language: Language, started_programs: Collection[str]) -> bool:
    return any(re.fullmatch(program, name) for program in language.programs for name in started_programs)


def _split_words(command: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command and those of a command line that it passes to a shell."""
    for word in command:
        yield word
        if any(blank in word for blank in " \t\n;&|"):
            try:
                yield from shlex.split(re.sub(r"[;&|()<>]+", " ", word))
            except ValueError:  # an open quote: the pieces still tell something
                yield from word.split()
