"""Start the runners of Node.js so that they write a report that Redstart can read.

node's own runner, Jest, Vitest and Mocha each accept a file as reporter: Redstart passes its own (`inside/`), which
all write the same JSON. Measured with node 20, Jest 29, Vitest 3 and Mocha 11.

A test's ID is `test/cart.test.js::Cart > adds`: the file, and the titles from the outermost suite to the test. A file
that cannot be loaded has its path as ID. A number tells apart tests of the same name.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from pydantic import ValidationError

from redstart.core.frozen import FrozenValue, clip
from redstart.core.report import CAPTURED_LIMIT, Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Completed, Environment, Variation
from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.languages.node.printed_output import add_printed_output
from redstart.toolkit.languages.protocol import ReadCases, RunFault, SuiteRunner, list_unnamed_files
from redstart.toolkit.suites.problems.run_problems import SuiteProblem
from redstart.toolkit.suites.request import SuiteRequest, read_sandbox_file

CASES = "cases.json"
IDS = "ids.txt"
PATTERNS_SIZE = 20_000
FILES_LIMIT = 400
"""The most files that a command names; beyond that, the whole suite runs and only the requested tests are reported."""
SIZE_LIMIT = 64 << 20
DETAIL_LIMIT, MESSAGE_LIMIT, MESSAGE_LINES = 20_000, 1000, 6

_SHARED_REPORTER, _VITE = "redstart_cases.cjs", "redstart_vite.cjs"
_PROGRAMS = {"mocha": "mocha", "_mocha": "mocha", "ts-mocha": "mocha", "jest": "jest", "vitest": "vitest"}
_BY_PATH = re.compile(r"node_modules/(?:\.bin/)?(mocha|jest|vitest)(?:/|$)")
_NO_TESTS = re.compile(r"^(?:No tests found|No test files found|Error: No test files found)", re.MULTILINE)
_WRAPPERS = frozenset(
    {"npx", "npm", "yarn", "pnpm", "bunx", "env", "cross-env", "c8", "nyc", "dotenv", "sh", "node", "tsx"}
)
_DROPPED_OPTIONS = {
    "node": re.compile(r"--test-(?:reporter|reporter-destination|name-pattern|only)\b|--watch\b"),
    "jest": re.compile(
        r"--(?:reporters|watch|watchAll|coverage\w*|collectCoverage\w*|bail|silent|onlyChanged|ci|testNamePattern)\b"
        r"|-[obt]$"
    ),
    "vitest": re.compile(
        r"--(?:reporter|watch|coverage[\w.]*|bail|ui|changed|outputFile[\w.]*|testNamePattern)\b|-[wt]$"
    ),
    "mocha": re.compile(
        r"--(?:reporter|reporter-options?|watch|bail|parallel|grep|fgrep|dry-run|forbid-only|inline-diffs)\b|-[RwbpgfO]$"
    ),
}
"""Options that would hide tests or conflict with Redstart's."""
_VALUED = re.compile(
    r"--(?:test-reporter|test-reporter-destination|test-name-pattern|reporters?|reporter-options?|grep|fgrep"
    r"|testNamePattern|outputFile|coverageReporters|coverageDirectory|coverageProvider|collectCoverageFrom)$|-[RgfOt]$"
)
"""Those of these options whose value may be the next word."""


_TEST_FILE = re.compile(r"^[^-].*\.(?:test|spec)\.[cm]?[jt]sx?$")


class RunnerStart(NamedTuple):
    """A command that starts a runner: its name, the index of its program, and the index where its options begin."""

    runner: str
    program_index: int
    end: int


class NodeCase(FrozenValue):
    """One result as Redstart's reporters write it."""

    file: str
    titles: tuple[str, ...] = ()
    outcome: Outcome
    message: str = ""
    expected: str | None = None
    actual: str | None = None
    detail: str = ""
    seconds: float = 0.0
    stdout: str = ""
    stderr: str = ""


class NodeReport(FrozenValue):
    cases: tuple[NodeCase, ...] = ()
    whole: bool = True


def find_runner_start(argv: Sequence[str]) -> RunnerStart | None:
    """Find the runner that a command starts (`jest`, `npx mocha`, `node --import tsx --test`); None for any other."""
    for index, arg in enumerate(argv):
        if index and not _is_wrapper(argv[0]):
            return None
        name = PurePosixPath(arg).name
        if name in _PROGRAMS and ("/" not in arg or _BY_PATH.search(arg)):
            return RunnerStart(_PROGRAMS[name], index, index + 1)
        if name in ("node", "tsx"):
            remaining = argv[index + 1 :]
            by_path = next((place for place, item in enumerate(remaining) if _BY_PATH.search(item)), None)
            if by_path is not None and (match := _BY_PATH.search(remaining[by_path])):
                return RunnerStart(match[1], index, index + by_path + 2)
            return RunnerStart("node", index, index + 1) if "--test" in remaining else None
    return None


def _is_wrapper(arg: str) -> bool:
    """Return whether a runner may follow this word, so that `pytest -k jest` does not count as Jest."""
    return PurePosixPath(arg).name in _WRAPPERS or "=" in arg


def build_node_request(suite: Suite, *, ids: Sequence[str] = (), variation: Variation = PINNED) -> SuiteRequest:
    """Build the request that runs the whole suite, or that reports only `ids` and runs few other tests.

    The command's own options are kept, except those that hide tests or choose another reporter.
    """
    argv = suite.command or _DEFAULT_COMMANDS[suite.runner]
    start = find_runner_start(argv) or RunnerStart(suite.runner, 0, len(argv))
    program, options = argv[: start.end], _drop_conflicting_options(argv[start.end :], start.runner)
    files = tuple(dict.fromkeys(id_.partition("::")[0] for id_ in ids))
    selected_files = files if len(files) <= FILES_LIMIT else ()
    if variation.order == "reversed":
        selected_files = selected_files[::-1]
    task = _Asked(options, selected_files, _list_patterns(ids), variation, suite.detailed)
    arguments, names = _ARGUMENTS[start.runner](task)
    variables = {
        **variation.variables,
        "REDSTART_CASES": f"{OUT}/{CASES}",
        "NO_COLOR": "1",
        "FORCE_COLOR": "0",
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
    }
    extra_files = {name: read_sandbox_file(name) for name in (_SHARED_REPORTER, *names)}
    if ids:
        extra_files[IDS] = "".join(f"{CASE_MARK.sub('', id_)}\n" for id_ in ids)
        variables["REDSTART_IDS"] = f"{IN}/{IDS}"
    if variation.order and start.runner == "jest":
        variables |= {"REDSTART_ORDER": variation.order, "REDSTART_SEED": str(variation.seed)}
    if start.runner == "vitest":
        # With CI set, a missing snapshot is a failure and is not written.
        variables |= {"CI": "true", "NODE_OPTIONS": f"--require={IN}/{_VITE}"}
    return SuiteRequest((*program, *arguments), variables, extra_files, (CASES,))


def list_named_paths(argv: Sequence[str]) -> list[str]:
    """List the files and directories that a runner's command names, without globs."""
    start = find_runner_start(argv)
    arguments = argv[start.end :] if start else ()
    remaining_options = list(_extract_options(arguments))
    paths: list[str] = []
    for arg in arguments:
        is_option_part = remaining_options[:1] == [arg]
        if is_option_part:
            remaining_options.pop(0)
        # After an option that may take a value, only its name identifies a test file.
        if (not is_option_part or _TEST_FILE.search(arg)) and "*" not in arg and arg != "run":
            paths.append(arg)
    return paths


def read_node(completed: Completed) -> list[Case] | None:
    """Read the cases that a run wrote; None if there are none that can be read. The text is not trusted."""
    text = completed.files.get(CASES, "")
    if not text or len(text) > SIZE_LIMIT:
        return None
    try:
        report = NodeReport.model_validate(json.loads(text))
    except (ValueError, ValidationError, RecursionError):
        return None
    if not report.whole:
        return None
    counts: Counter[str] = Counter()
    cases: list[Case] = []
    for case in report.cases:
        name = " > ".join(" ".join(title.split()) or "(no title)" for title in case.titles)
        id_ = f"{case.file}::{name}" if name else case.file
        counts[id_] += 1
        cases.append(_build_case(case, id_ if counts[id_] == 1 else f"{id_} [#{counts[id_]}]"))
    return cases


def _build_case(node_case: NodeCase, id_: str) -> Case:
    lines = [line.rstrip() for line in node_case.message.splitlines() if line.strip()]
    return Case(
        id=id_,
        outcome=node_case.outcome,
        message=clip("\n".join(lines[:MESSAGE_LINES]), MESSAGE_LIMIT),
        expected=node_case.expected,
        actual=node_case.actual,
        detail=clip(node_case.detail, DETAIL_LIMIT),
        seconds=round(node_case.seconds, 3),
        stdout=clip(node_case.stdout.strip("\n"), CAPTURED_LIMIT),
        stderr=clip(node_case.stderr.strip("\n"), CAPTURED_LIMIT),
    )


def _list_patterns(ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the titles of each requested test; empty if a whole file is requested, or if they are too long."""
    titles = [tuple(CASE_MARK.sub("", id_).partition("::")[2].split(" > ")) for id_ in ids]
    is_too_long = sum(len(title) for item in titles for title in item) > PATTERNS_SIZE
    return () if is_too_long or any(item == ("",) for item in titles) else tuple(dict.fromkeys(titles))


def _drop_conflicting_options(arguments: Sequence[str], runner: str) -> tuple[str, ...]:
    kept_arguments: list[str] = []
    remaining = list(arguments)
    while remaining:
        arg = remaining.pop(0)
        if not _DROPPED_OPTIONS[runner].match(arg):
            kept_arguments.append(arg)
        elif _VALUED.match(arg) and remaining and not remaining[0].startswith("-"):
            remaining.pop(0)
    return tuple(kept_arguments)


def _extract_options(arguments: Sequence[str]) -> tuple[str, ...]:
    """Keep options and the words that may be their values; drop paths."""
    options: list[str] = []
    may_be_value = False
    for arg in arguments:
        if arg.startswith("-") or may_be_value:
            options.append(arg)
        may_be_value = arg.startswith("-") and "=" not in arg and arg not in ("--test", "-i", "--")
    return tuple(options)


class _Asked(NamedTuple):
    """The task of a runner: the command's own options, the tests and their order."""

    options: tuple[str, ...]
    files: tuple[str, ...]
    patterns: tuple[tuple[str, ...], ...]
    variation: Variation
    detailed: bool
    """`Suite.detailed`."""


Arguments = tuple[tuple[str, ...], tuple[str, ...]]
"""The arguments after the program, and the names of Redstart's files among them."""


def _build_node_arguments(task: _Asked) -> Arguments:
    reporter = "redstart_node.mjs"
    own_options = (
        *(f"--test-name-pattern=/^{_escape_title(title)}$/" for title in _list_title_patterns(task.patterns)),
        f"--test-reporter={IN}/{reporter}",
        f"--test-reporter-destination={OUT}/{CASES}",
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
    )
    arguments = (*_extract_options(task.options), *task.files) if task.files else tuple(task.options)
    return (*own_options, *(arguments if "--test" in arguments else ("--test", *arguments))), (reporter,)


def _list_title_patterns(patterns: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """List the titles by which node selects tests: it runs a nested test only if the outer one is selected too.

    A title may contain the separator between titles, so adjacent titles are also joined.
    """
    joined_titles: dict[str, None] = {}
    for titles in patterns:
        for start in range(len(titles)):
            for end in range(start + 1, len(titles) + 1):
                joined_titles[" > ".join(titles[start:end])] = None
    return tuple(joined_titles)


def _build_jest_arguments(task: _Asked) -> Arguments:
    reporter, order = "redstart_jest.cjs", "redstart_jest_order.cjs"
    own_options = ("--ci", "--coverage=false", "--watchman=false", "--bail=0", "--reporters=default")
    own_options += (
        f"--reporters={IN}/{reporter}",
        *((f"--testSequencer={IN}/{order}",) if task.variation.order else ()),
    )
    own_options += (f"--testNamePattern={_join_titles(task.patterns)}",) if task.patterns else ()
    arguments = (
        (*_extract_options(task.options), *own_options, "--runTestsByPath", *task.files)
        if task.files
        else (*task.options, *own_options)
    )
    return arguments, (reporter, *((order,) if task.variation.order else ()))


def _build_vitest_arguments(task: _Asked) -> Arguments:
    reporter = "redstart_vitest.mjs"
    user_arguments = (
        tuple(task.options)[1:]
        if task.options[:1] and task.options[0] in ("run", "watch", "dev", "--run")
        else tuple(task.options)
    )
    own_options = ("--watch=false", "--bail=0", "--coverage.enabled=false", "--reporter=default")
    own_options += (f"--reporter={IN}/{reporter}",)
    own_options += ("--sequence.shuffle", f"--sequence.seed={task.variation.seed or 1}") if task.variation.order else ()
    own_options += (f"--testNamePattern={_join_titles(task.patterns)}",) if task.patterns else ()
    arguments = (
        (*_extract_options(user_arguments), *own_options, *task.files)
        if task.files
        else (*user_arguments, *own_options)
    )
    return ("run", *arguments), (reporter, _VITE)


def _build_mocha_arguments(task: _Asked) -> Arguments:
    reporter, load = "redstart_mocha.cjs", "redstart_mocha_load.cjs"
    names = (reporter, load, *(("redstart_mocha_output.cjs",) if task.detailed else ()))
    start = names[2] if task.detailed else reporter
    own_options = ("--no-parallel", "--no-bail", f"--require={IN}/{load}", f"--reporter={IN}/{start}")
    own_options += (f"--grep={_join_titles(task.patterns)}",) if task.patterns else ()
    return (*task.options, *own_options, *task.files), names


_ARGUMENTS = {
    "node": _build_node_arguments,
    "jest": _build_jest_arguments,
    "vitest": _build_vitest_arguments,
    "mocha": _build_mocha_arguments,
}
_DEFAULT_COMMANDS = {"node": ("node", "--test"), "jest": ("jest",), "vitest": ("vitest",), "mocha": ("mocha",)}


def _join_titles(patterns: Sequence[Sequence[str]]) -> str:
    """Join titles with spaces, as Jest, Vitest and Mocha match them; a title itself may contain ` > `."""
    between = r"(?:\s>)?\s"
    return "|".join(f"^{between.join(map(_escape_title, titles))}$" for titles in patterns)


def _escape_title(title: str) -> str:
    """Escape a title for JavaScript's regular expressions; a space in it matches any run of whitespace."""
    return re.sub(r"\s+", r"\\s+", re.sub(r"[.*+?^${}()|\[\]\\/]", r"\\\g<0>", title))


class NodeRunner(SuiteRunner):
    """node's own runner, Jest, Vitest and Mocha."""

    def build_request(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        variation: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        return build_node_request(suite, ids=ids, variation=variation)

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        cases = read_node(completed)
        start = find_runner_start(suite.command or _DEFAULT_COMMANDS[suite.runner])
        if cases and suite.detailed and (start.runner if start else suite.runner) == "vitest":
            cases = add_printed_output(cases, completed.output)
        return ReadCases(cases, bool(completed.files.get(CASES)))

    def find_run_fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        return (
            RunFault("No tests were collected.", SuiteProblem.no_tests) if _NO_TESTS.search(completed.output) else None
        )

    def explain_missing_program(self, suite: Suite) -> str:
        return f"{suite.command[0]} is not installed where the tests run. Install what the project needs: npm ci."

    def list_added_arguments(self, suite: Suite, files: Sequence[str]) -> list[str]:
        return list_unnamed_files(list_named_paths(suite.command), files)

    def describe(self, suite: Suite) -> str:
        return "node:test" if suite.runner == "node" else suite.runner
