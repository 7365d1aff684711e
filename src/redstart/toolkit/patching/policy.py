"""Rules against protected files and deceptive text. They judge the resulting tree, never the patch's text."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase as fnmatch
from typing import NamedTuple, cast

from redstart.ports.store.port.trees import TreeChange
from redstart.toolkit.languages.registry import in_test_directory, is_test_path, is_test_support, list_languages

LONGEST_NAME, LONGEST_PATH, DEEPEST = 120, 400, 20
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the writing direction, so that a line reads differently than it runs."""
_BINARY = re.compile(rb"^Binary files (?:a/(.*)|/dev/null) and (?:b/(.*)|/dev/null) differ$", re.MULTILINE)


def find_path_problem(path: str) -> str:
    """Return why a new path is refused for its name alone; empty if it is acceptable."""
    parts = path.split("/")
    if len(parts) > DEEPEST or len(path) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in parts):
        return "its path is too long"
    if any(not character.isprintable() or unicodedata.category(character) == "Cf" for character in path):
        return "its path holds characters that cannot be seen"
    if any(character in '\\:*?"<>|' for character in path) or any(part.endswith((".", " ")) for part in parts):
        return "its path means something else on another system"
    if parts[0].startswith(("~", "-")) or any(part.startswith(" ") or _DEVICES.fullmatch(part) for part in parts):
        return "its path means something else to a shell or on another system"
    if any(len(_find_scripts(part)) > 1 or (part.startswith(".") and not part.isascii()) for part in parts):
        return "its name mixes letters that look alike"
    return ""


def _find_scripts(name: str) -> set[str]:
    """Return the scripts with look-alike letters that a name uses."""
    scripts = (unicodedata.name(character, "").partition(" ")[0] for character in name if character.isalpha())
    return {script for script in scripts if script in ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")}


def find_text_problem(diff: bytes) -> str:
    """Return why the lines that a diff adds are refused; empty if they are acceptable."""
    if _BINARY.search(diff):
        return "it adds a file that is no text"
    added_lines = (line[1:] for line in diff.decode(errors="replace").splitlines() if line.startswith("+"))
    if any(_TURNS.search(line) for line in added_lines):
        return "it adds characters that change the direction of writing: the code would not run as it reads"
    return ""


_EDITABLE_PROJECT_KEYS = (
    "dependencies",
    "optional-dependencies",
    "description",
    "scripts",
    "keywords",
    "urls",
    "authors",
)
_EDITABLE_PACKAGE_KEYS = ("dependencies", "description", "bin", "keywords", "author", "files", "homepage")
MAX_MANIFEST_BYTES = 1 << 20


def is_about_packages(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Return whether a changed `pyproject.toml` or `package.json` differs only in packages and project descriptions.

    Settings for finding and running tests or building the project must stay the same. False for a file that is new,
    deleted or not parseable.
    """
    if before is None or after is None or len(after) > MAX_MANIFEST_BYTES:
        return False
    name = path.rpartition("/")[2]
    try:
        if name == "pyproject.toml":
            old, new = (tomllib.loads(text.decode()) for text in (before, after))
            return _remove_from_section(old, "project", _EDITABLE_PROJECT_KEYS) == _remove_from_section(
                new, "project", _EDITABLE_PROJECT_KEYS
            )
        if name == "package.json":
            documents = [json.loads(text) for text in (before, after)]
            if all(isinstance(item, dict) for item in documents):
                old, new = (
                    _remove_names(cast("dict[str, object]", item), _EDITABLE_PACKAGE_KEYS) for item in documents
                )
                return old == new
    except (ValueError, RecursionError):
        return False
    return False


def _remove_from_section(table: dict[str, object], section: str, names: tuple[str, ...]) -> dict[str, object]:
    inner = table.get(section)
    if not isinstance(inner, dict):
        return table
    return {**table, section: _remove_names(cast("dict[str, object]", inner), names)}


def _remove_names(table: dict[str, object], names: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, value in table.items() if name not in names}


MAX_DIFF_BYTES = 200_000
_WRITES_MASK = re.compile("^\\+.*«secret:[\\w-]+»".encode(), re.MULTILINE)
"""A model sees a mask instead of a secret: an edit with the mask would overwrite the secret."""


class Protection(StrEnum):
    """The reason why a patch must not change a path."""

    settings = "settings"
    test = "test"
    starts_tests = "starts_tests"
    git = "git"
    configuration = "configuration"
    hook = "hook"
    instructions = "instructions"
    installed = "installed"
    startup = "startup"
    runner = "runner"

    @property
    def words(self) -> str:
        return _PROTECTION_REASONS[self]


_PROTECTION_REASONS = {
    Protection.settings: "your settings protect it",
    Protection.test: "it is a test: the code is to be fixed, not the test",
    Protection.starts_tests: "the tests are in it or start from it: the code is to be fixed instead",
    Protection.git: "it is git's own, not the program's",
    Protection.configuration: "it can change what the tests are or how they run",
    Protection.hook: "it can run a program on the machine of whoever works here",
    Protection.instructions: "it tells redstart, or another agent, what to do",
    Protection.installed: "it belongs to what is installed, not to the code",
    Protection.startup: "it would run at every start of Python",
    Protection.runner: "it would stand in for the test runner",
}


_CI = re.compile(
    r"^(?:\.github|\.circleci|\.buildkite|\.woodpecker|\.gitea|\.forgejo)/"
    r"|^(?:\.gitlab-ci|\.travis|azure-pipelines|bitbucket-pipelines|\.?appveyor|\.drone)\.ya?ml$|^jenkinsfile$"
)
_HOOKS = re.compile(
    r"^(?:\.husky|\.githooks|\.vscode|\.idea|\.devcontainer)/|^\.?(?:pre-commit-config|lefthook)\.ya?ml$"
    r"|(?:^|/)\.(?:envrc|env|npmrc|pypirc|netrc)$"
)
_TELLS = re.compile(
    r"(?:^|/)(?:redstart\.toml|(?:agents|claude|gemini|copilot-instructions)\.md|\.(?:cursor|windsurf|cline)rules)(?:/|$)"
    r"|(?:^|/)\.(?:cursor|claude|windsurf|clinerules)/"
)
"""Files that instruct Redstart or other agents in later runs."""
_INSTALLED_PATH = re.compile(
    r"(?:^|/)(?:\.venv|venv|\.tox|\.nox|node_modules|site-packages|__pycache__|[^/]*\.(?:egg|dist)-info)/"
)
_GIT_FILES = frozenset((".gitmodules", ".gitattributes"))
ABSENT_MODE = "000000"
_REGULAR = ("100644", "100755", ABSENT_MODE)


def find_protection(path: str, globs: Sequence[str] = (), tests: Sequence[str] = ()) -> Protection | None:
    """Return why a patch must not change this path; None if it may.

    `globs` are the user's, in addition to the built-in rules; `tests` match files from which the suite's command
    starts.
    """
    folded = path.casefold()
    names = frozenset(folded.split("/"))  # a directory may have the name of a file and replace it elsewhere
    if any(fnmatch(folded, glob.casefold()) for glob in globs):
        return Protection.settings
    if in_test_directory(path) or (is_test_path(path) and not is_test_support(folded)):
        return Protection.test
    if any(fnmatch(folded, glob.casefold()) for glob in tests):
        return Protection.starts_tests
    if names & _GIT_FILES:
        return Protection.git
    if reason := next(filter(None, (language.get_protection(folded) for language in list_languages())), None):
        return reason
    if _CI.search(folded):
        return Protection.configuration
    if _HOOKS.search(folded):
        return Protection.hook
    if _TELLS.search(folded):
        return Protection.instructions
    if _INSTALLED_PATH.search(folded):
        return Protection.installed
    return None


class Violation(NamedTuple):
    path: str
    reason: str
    protection: Protection | None = None


def find_violations(
    changes: Sequence[TreeChange],
    diff: bytes,
    globs: Sequence[str] = (),
    scope: Sequence[str] = (),
    tests: Sequence[str] = (),
) -> tuple[Violation, ...]:
    """List the violations of a change of the tree with this diff; empty if it may be tested.

    `scope` limits the paths that may change.
    """
    candidates = (_check_change(change, globs, tests) or _check_scope(change.path, scope) for change in changes)
    problems = [violation for violation in candidates if violation]
    if len(diff) > MAX_DIFF_BYTES:
        problems.append(Violation("diff", f"it is larger than {MAX_DIFF_BYTES // 1000} KB"))
    elif _WRITES_MASK.search(diff):
        problems.append(Violation("diff", "it would write a mask in the place of a secret"))
    elif reason := find_text_problem(diff):
        problems.append(Violation("diff", reason))
    return tuple(problems)


def _check_scope(path: str, scope: Sequence[str]) -> Violation | None:
    """Check the scope. Unlike protection it is case-sensitive: a directory in another case is another directory."""
    if not scope or any(path.startswith(f"{item.rstrip('/')}/") or fnmatch(path, item) for item in scope):
        return None
    return Violation(path, f"only {', '.join(scope)} is to be changed in this run")


def _check_change(change: TreeChange, globs: Sequence[str], tests: Sequence[str]) -> Violation | None:
    path = change.path
    if change.new_mode not in _REGULAR:
        return Violation(path, f"it would become no regular file (mode {change.new_mode})")
    if change.old_mode not in _REGULAR:
        return Violation(path, f"it is no regular file (mode {change.old_mode})")
    if protection := find_protection(path, globs, tests):
        return Violation(path, protection.words, protection)
    reason = find_path_problem(path) if change.old_mode == ABSENT_MODE else ""
    return Violation(path, reason) if reason else None
