"""Find the Node.js runner of a directory's tests, and how its own `test` script starts it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from posixpath import dirname, join, normpath
from typing import NamedTuple, cast

from redstart.toolkit.languages.node.runners import find_runner_start
from redstart.toolkit.languages.node.trees import SUFFIXES
from redstart.toolkit.languages.protocol import Read, SuitePlace

PACKAGE = "package.json"
CONFIGURATION = {
    "vitest": re.compile(r"^vitest\.(?:config|workspace)\.[cm]?[jt]s$"),
    "jest": re.compile(r"^jest\.config\.(?:[cm]?[jt]s|json)$"),
    "mocha": re.compile(r"^\.mocharc(?:\.(?:[cm]?js|ya?ml|jsonc?))?$"),
}
MOST_STEPS = 4
"""How many levels of scripts that call one another are followed."""

_TEST_FILE_NAME = re.compile(r"(?:^|[.\-_])(?:test|tests|spec|specs)\.[cm]?[jt]sx?$|^test[.\-_].*\.[cm]?[jt]sx?$")
_FOLDERS = frozenset({"__tests__", "test", "tests", "spec", "specs"})
_FOREIGN = frozenset({"node_modules", "bower_components", "dist", "build", "coverage", "vendor"})
_IN_TESTS = frozenset({"__tests__", "__fixtures__", "fixtures", "test", "tests"})
_OPERATORS = re.compile(r"&&|\|\||[;|&]$")
_ASSIGNMENT = re.compile(r"^[A-Za-z_]\w*=")
_IMPORTS_NODE_TEST = re.compile(rb"""['"]node:test['"]""")
_LINTS = frozenset(
    "eslint xo standard prettier biome oxlint tsd publint attw stylelint tslint knip depcheck ls-lint rimraf".split()  # noqa: SIM905
)
"""Programs in a script that say nothing about tests, or that delete files."""
_GLOB = re.compile(r"[*?{]")


class ScriptCommand(NamedTuple):
    """One command of a script."""

    arguments: tuple[str, ...]
    variables: tuple[str, ...]


def is_node_test(path: str) -> bool:
    """Return whether a path belongs to the tests of a JavaScript or TypeScript project, by its name or directory."""
    pure = PurePosixPath(path)
    if pure.suffix not in SUFFIXES:
        return False
    return bool(_TEST_FILE_NAME.search(pure.name)) or not _FOLDERS.isdisjoint(pure.parts[:-1])


def find_suite(folder: str, paths: Iterable[str], read: Read) -> SuitePlace | None:
    """Find the suite of the project in this directory; None if it is not a Node.js project or has no tests."""
    all_paths = frozenset(paths)
    package = _read_package(folder, all_paths, read)
    if package is None:
        return None
    own_paths = [path for path in all_paths if _is_project_path(path, folder)]
    if not any(is_node_test(path) for path in own_paths):
        return None
    scripts = _select_texts(package.get("scripts"))
    if (command := from_script(scripts.get("test", ""), scripts)) and (start := find_runner_start(command)):
        return SuitePlace(folder, start.runner, _expand_globs(command, folder, all_paths))
    runner = (
        _find_by_packages(folder, all_paths, read)
        or _find_by_configuration(folder, all_paths)
        or _find_by_imports(own_paths, read)
    )
    return SuitePlace(folder, runner) if runner else None


def find_suites(paths: Sequence[str], read: Read) -> tuple[SuitePlace, ...]:
    """Find a tree's suites: the root's if its script or tests define one, else one for each package with tests."""
    all_paths = frozenset(paths)
    root = find_suite("", all_paths, read)
    owners = {dirname(path) for path in all_paths if PurePosixPath(path).name == PACKAGE and _is_package(path)} - {""}
    suites = [suite for folder in sorted(owners) if (suite := find_suite(folder, all_paths, read))]
    if root and (root.command or not suites):
        return (root,)
    return tuple(suites) or ((root,) if root else ())


def find_named_suite(folder: str, paths: Iterable[str], read: Read, words: Sequence[str]) -> SuitePlace | None:
    """Find the suite that the user's command starts (`npm test`, `npx jest src`); None if it starts no runner."""
    all_paths = frozenset(paths)
    package = _read_package(folder, all_paths, read) or {}
    command = from_script(shlex.join(words), _select_texts(package.get("scripts")))
    start = find_runner_start(command)
    return SuitePlace(folder, start.runner, _expand_globs(command, folder, all_paths)) if start else None


def from_script(script: str, scripts: Mapping[str, str]) -> tuple[str, ...]:
    """Extract the command by which a script starts a runner, with its earlier steps; empty if it starts none.

    Linters and coverage wrappers are dropped. Required earlier steps (a build) run first, in a shell:
    `sh -c 'npm run build && exec "$@"' sh jest`.
    """
    steps = _list_steps(script, scripts, MOST_STEPS)
    index = next((place for place, step in enumerate(steps) if find_runner_start(step.arguments)), None)
    if index is None:
        return ()
    runner_command = _unwrap(steps[index])
    earlier = [_format_step(step) for step in steps[:index] if PurePosixPath(step.arguments[0]).name not in _LINTS]
    if not earlier:
        return runner_command
    return ("sh", "-c", f'{" && ".join(earlier)} && exec "$@"', "sh", *runner_command)


def _list_steps(script: str, scripts: Mapping[str, str], depth: int) -> list[ScriptCommand]:
    steps: list[ScriptCommand] = []
    for words in _split_segments(script):
        count = next((place for place, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
        step = ScriptCommand(tuple(words[count:]), tuple(words[:count]))
        if not step.arguments or step.arguments[0] == "echo" or _is_type_check(step.arguments):
            continue
        name = _get_script_name(step.arguments)
        if name in scripts and depth:
            inner_steps = _list_steps(scripts[name], scripts, depth - 1)
            steps += [item._replace(variables=(*step.variables, *item.variables)) for item in inner_steps]
        else:
            steps.append(step)
    return steps


def _split_segments(script: str) -> list[list[str]]:
    try:
        lexer = shlex.shlex(script, posix=True, punctuation_chars=";&|")
        lexer.whitespace_split = True
        lexer.commenters = ""
        tokens = list(lexer)
    except ValueError:
        return []
    segments: list[list[str]] = [[]]
    for token in tokens:
        if _OPERATORS.fullmatch(token):
            segments.append([])
        else:
            segments[-1].append(token)
    return [words for words in segments if words]


def _is_type_check(words: Sequence[str]) -> bool:
    return PurePosixPath(words[0]).name == "tsc" and "--noEmit" in words


def _get_script_name(words: Sequence[str]) -> str:
    """Return the script that `npm test`, `npm run x`, `yarn x` or `pnpm run x` starts; empty for anything else."""
    if words[0] not in ("npm", "yarn", "pnpm", "bun"):
        return ""
    names = [word for word in words[1:] if not word.startswith("-")]
    if names[:1] in (["run"], ["run-script"]):
        names = names[1:]
    return {"t": "test", "tst": "test"}.get(names[0], names[0]) if names else ""


def _unwrap(step: ScriptCommand) -> tuple[str, ...]:
    """Return the runner with its options, without npx, cross-env, c8 and the like; their variables stay."""
    start = find_runner_start(step.arguments)
    begin = start.program_index if start else 0
    variables = (*step.variables, *(word for word in step.arguments[:begin] if _ASSIGNMENT.match(word)))
    return (*(("env", *variables) if variables else ()), *step.arguments[begin:])


def _format_step(step: ScriptCommand) -> str:
    assignments = [
        f"{name}={shlex.quote(value)}" for name, _, value in (variable.partition("=") for variable in step.variables)
    ]
    return " ".join((*assignments, shlex.join(step.arguments)))


def _expand_globs(command: tuple[str, ...], folder: str, all_paths: frozenset[str]) -> tuple[str, ...]:
    """Expand globs for node's own runner, as a shell would: node 20 does not accept globs."""
    start = find_runner_start(command)
    if start is None or start.runner != "node":
        return command
    prefix = f"{folder}/" if folder else ""
    inside = sorted(path.removeprefix(prefix) for path in all_paths if path.startswith(prefix))
    words: list[str] = []
    for word in command:
        matches = [path for path in inside if _matches(path, word)] if _GLOB.search(word) and word[0] != "-" else []
        words += matches or [word]
    return tuple(words)


def _matches(path: str, glob: str) -> bool:
    return re.fullmatch(_build_pattern(normpath(glob)), path) is not None


def _build_pattern(glob: str) -> str:
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\{[^}]*\})", glob)
    translations = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(
        translations.get(part)
        or (f"(?:{'|'.join(map(re.escape, part[1:-1].split(',')))})" if part[:1] == "{" else re.escape(part))
        for part in parts
        if part
    )


def _read_package(folder: str, all_paths: frozenset[str], read: Read) -> dict[str, object] | None:
    path = join(folder, PACKAGE)
    if path not in all_paths:
        return None
    try:
        document: object = json.loads(read(path) or b"")
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", document) if isinstance(document, dict) else None


def _select_texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    pairs = cast("dict[object, object]", value).items()
    return {str(key): text for key, text in pairs if isinstance(text, str)}


def _find_by_packages(folder: str, all_paths: frozenset[str], read: Read) -> str:
    """Find the runner in the dependencies of the directory or its parents; `jest` may also be a key of package.json."""
    while True:
        package = _read_package(folder, all_paths, read) or {}
        dependencies = {name for key in ("devDependencies", "dependencies") for name in _select_texts(package.get(key))}
        dependencies |= {runner for runner in ("jest", "mocha") if runner in package}
        if detected := next((runner for runner in ("vitest", "jest", "mocha") if runner in dependencies), ""):
            return detected
        if not folder:
            return ""
        folder = dirname(folder)


def _find_by_configuration(folder: str, all_paths: frozenset[str]) -> str:
    names = [PurePosixPath(path).name for path in all_paths if dirname(path) == folder]
    return next((runner for runner, pattern in CONFIGURATION.items() if any(map(pattern.match, names))), "")


def _find_by_imports(own_paths: Sequence[str], read: Read) -> str:
    tests = (path for path in sorted(own_paths) if is_node_test(path))
    return "node" if any(_IMPORTS_NODE_TEST.search(read(path) or b"") for path in tests) else ""


def _is_project_path(path: str, folder: str) -> bool:
    inside = f"{folder}/" if folder else ""
    return path.startswith(inside) and _FOREIGN.isdisjoint(path.removeprefix(inside).split("/")[:-1])


def _is_package(path: str) -> bool:
    folders = path.split("/")[:-1]
    return _FOREIGN.isdisjoint(folders) and _IN_TESTS.isdisjoint(folders)
