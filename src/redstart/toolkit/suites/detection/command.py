"""Handle commands that start pytest themselves: `make test`, `nox`, `tox`, a script.

`PYTEST_ADDOPTS`, which all of them pass on, reaches pytest. tox and nox would also create environments and fill them
from the network, which the sandbox lacks, so Redstart makes them use the user's environment. Measured with tox 4.11
and 4.67, nox 2024.4 and 2026.10:

- nox has `--force-venv-backend none --no-install`; our noxfile, which wraps the project's, does the rest.
- tox has no such switch, but loads a plugin from Python's path. The plugin keeps tox's environment empty and provides
  the user's interpreter and programs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from posixpath import join
from typing import NamedTuple

from redstart.core.errors import ConfigError
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, Environment
from redstart.toolkit.suites.request import read_sandbox_file

ROOT = "REDSTART_ROOT"
TOX_PLUGIN = "redstart_tox.py"
NOXFILE = "redstart_noxfile.py"
_TOX_ABOUT = "redstart_tox-0.dist-info/"
_STARTS = ("-m", "run")
_VERSION = re.compile(r"(?<=\w)-(?:\d+\.\d+t?|pypy-?[\d.]+)(?=\(|$)")
"""The interpreter in the name of a nox session."""


_UNREPORTED_RUNNERS = {
    "trial": "run the same tests with pytest: --test-cmd pytest",
    "twisted.trial": "run the same tests with pytest: --test-cmd pytest",
    "nose2": '--test-cmd "nose2 --plugin nose2.plugins.junitxml --junit-xml" --junit nose2-junit.xml',
    "nosetests": '--test-cmd "nosetests --with-xunit" --junit nosetests.xml',
    "green": '--test-cmd "green --junit-report green.xml" --junit green.xml',
    "zope-testrunner": '--test-cmd "zope-testrunner --xml reports ..." --junit "reports/testreports/*.xml"',
}
"""Runners that do not use pytest, with the way to get results per test from them."""


class CommandStart(NamedTuple):
    """How to start a command so that our options reach pytest."""

    argv: tuple[str, ...]
    variables: dict[str, str]
    files_in: dict[str, str]


def count_start_words(argv: Sequence[str], *programs: str) -> int:
    """Count the words that start one of these programs (`tox`, `python -m tox`, `uv run tox`). 0 for anything else."""
    for index, word in enumerate(argv):
        if PurePosixPath(word).name in programs and (index == 0 or argv[index - 1] in _STARTS):
            return index + 1
    return 0


def require_results(argv: Sequence[str], junit: str) -> None:
    """Raise `ConfigError` if the command reports single tests only in a JUnit XML report and the user named none."""
    for name, remedy in _UNREPORTED_RUNNERS.items():
        if not junit and count_start_words(argv, name):
            raise ConfigError(f"{name} gives no results per test without a JUnit XML report (--junit)", remedy=remedy)


def with_interpreter(start: Sequence[str], environment: Environment) -> tuple[str, ...]:
    """Replace a bare `python` with the target's interpreter."""
    if start[0] in ("python", "python3"):
        return (environment.python, *start[1:])
    return tuple(start)


def adapt_command(suite: Suite, environment: Environment) -> CommandStart:
    """Adapt the user's command so that it runs in the sandbox."""
    words = suite.command
    root = {ROOT: join(environment.mount, suite.folder)}
    if end := count_start_words(words, "nox"):
        return _adapt_nox(with_interpreter(words[:end], environment), words[end:], root)
    if end := count_start_words(words, "tox"):
        start = with_interpreter(words[:end], environment)
        return _adapt_tox((*start, *words[end:]), environment, root)
    return CommandStart(words, root, {})


def _adapt_nox(start: Sequence[str], arguments: Sequence[str], root: dict[str, str]) -> CommandStart:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, file = _parse_nox_options(arguments[:end])
    own_options = ("--force-venv-backend", "none", "--no-install", "--noxfile", f"{IN}/{NOXFILE}")
    variables = {**root, "REDSTART_NOX_ROOT": root[ROOT], "REDSTART_NOXFILE": file}
    return CommandStart(
        (*start, *options, *own_options, *arguments[end:]), variables, {NOXFILE: read_sandbox_file(NOXFILE)}
    )


def _parse_nox_options(options: Sequence[str]) -> tuple[list[str], str]:
    """Return the options to pass on, and the noxfile.

    Without environments of its own, nox has one session instead of one for each version of Python.
    """
    kept_options: list[str] = []
    file = "noxfile.py"
    words = list(options)
    while words:
        word = words.pop(0)
        name, _, value = word.partition("=")
        if name in ("-f", "--noxfile"):
            file = value or (words.pop(0) if words else file)
        elif name in ("-p", "--python", "--pythons"):
            while words and not words[0].startswith("-"):
                words.pop(0)
        elif name != "--no-venv":
            kept_options.append(_VERSION.sub("", word))
    return kept_options, file


def _adapt_tox(argv: tuple[str, ...], environment: Environment, root: dict[str, str]) -> CommandStart:
    metadata_files = {
        f"{_TOX_ABOUT}METADATA": "Metadata-Version: 2.1\nName: redstart-tox\nVersion: 0\n",
        f"{_TOX_ABOUT}entry_points.txt": "[tox]\nredstart_tox = redstart_tox\n",
    }
    variables = {
        **root,
        "REDSTART_PYTHON": environment.python,
        "TOX_WORK_DIR": f"{OUT}/tox",
        # tox would also fetch its requirements from the network before it starts.
        "TOX_OVERRIDE": "tox.requires=",
        "VIRTUALENV_NO_SEED": "1",
    }
    return CommandStart(argv, variables, {TOX_PLUGIN: read_sandbox_file(TOX_PLUGIN), **metadata_files})
