"""Starts the runners of Node.js so that they write a report that Redstart can read.

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

from redstart.core.noun import FrozenValue, clip
from redstart.core.report import Case, Outcome
from redstart.core.run import Suite
from redstart.core.shell import IN, OUT, PINNED, Completed, Environment, Variation
from redstart.toolkit.languages.node import CASE_MARK
from redstart.toolkit.languages.protocol import ReadCases, RunFault, SuiteRunner, beside
from redstart.toolkit.suites.problems.problem import SuiteProblem
from redstart.toolkit.suites.request import SuiteRequest, inside

CASES = "cases.json"
IDS = "ids.txt"
PATTERNS_SIZE = 20_000
FILES_LIMIT = 400
"""The most files that a command names; beyond that, the whole suite runs and only the requested tests are reported."""
SIZE_LIMIT = 64 << 20
DETAIL_LIMIT, MESSAGE_LIMIT, MESSAGE_LINES = 20_000, 1000, 6

_SHARED, _VITE = "redstart_cases.cjs", "redstart_vite.cjs"
_PROGRAMS = {"mocha": "mocha", "_mocha": "mocha", "ts-mocha": "mocha", "jest": "jest", "vitest": "vitest"}
_BY_PATH = re.compile(r"node_modules/(?:\.bin/)?(mocha|jest|vitest)(?:/|$)")
_NO_TESTS = re.compile(r"^(?:No tests found|No test files found|Error: No test files found)", re.MULTILINE)
_WRAPPERS = frozenset(
    {"npx", "npm", "yarn", "pnpm", "bunx", "env", "cross-env", "c8", "nyc", "dotenv", "sh", "node", "tsx"}
)
_DROPPED = {
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
    begin: int
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


class NodeReport(FrozenValue):
    cases: tuple[NodeCase, ...] = ()
    whole: bool = True


def start_of(words: Sequence[str]) -> RunnerStart | None:
    """Find the runner that a command starts (`jest`, `npx mocha`, `node --import tsx --test`); None for any other."""
    for index, word in enumerate(words):
        if index and not _may_come_first(words[0]):
            return None
        name = PurePosixPath(word).name
        if name in _PROGRAMS and ("/" not in word or _BY_PATH.search(word)):
            return RunnerStart(_PROGRAMS[name], index, index + 1)
        if name in ("node", "tsx"):
            rest = words[index + 1 :]
            by_path = next((place for place, item in enumerate(rest) if _BY_PATH.search(item)), None)
            if by_path is not None and (found := _BY_PATH.search(rest[by_path])):
                return RunnerStart(found[1], index, index + by_path + 2)
            return RunnerStart("node", index, index + 1) if "--test" in rest else None
    return None


def _may_come_first(word: str) -> bool:
    """Return whether a runner may follow this word, so that `pytest -k jest` does not count as Jest."""
    return PurePosixPath(word).name in _WRAPPERS or "=" in word


def command(suite: Suite, *, ids: Sequence[str] = (), vary: Variation = PINNED) -> SuiteRequest:
    """Build the request that runs the whole suite, or that reports only `ids` and runs few other tests.

    The command's own options are kept, except those that hide tests or choose another reporter.
    """
    words = suite.command or _OWN[suite.runner]
    start = start_of(words) or RunnerStart(suite.runner, 0, len(words))
    program, given = words[: start.end], _kept(words[start.end :], start.runner)
    files = tuple(dict.fromkeys(id_.partition("::")[0] for id_ in ids))
    chosen = files if len(files) <= FILES_LIMIT else ()
    if vary.order == "reversed":
        chosen = chosen[::-1]
    arguments, names = _ARGUMENTS[start.runner](_Asked(given, chosen, _patterns(ids), vary))
    variables = {
        **vary.variables,
        "REDSTART_CASES": f"{OUT}/{CASES}",
        "NO_COLOR": "1",
        "FORCE_COLOR": "0",
        "npm_config_offline": "true",
        "npm_config_update_notifier": "false",
    }
    given_along = {name: inside(name) for name in (_SHARED, *names)}
    if ids:
        given_along[IDS] = "".join(f"{CASE_MARK.sub('', id_)}\n" for id_ in ids)
        variables["REDSTART_IDS"] = f"{IN}/{IDS}"
    if vary.order and start.runner == "jest":
        variables |= {"REDSTART_ORDER": vary.order, "REDSTART_SEED": str(vary.seed)}
    if start.runner == "vitest":
        # With CI set, a missing snapshot is a failure and is not written.
        variables |= {"CI": "true", "NODE_OPTIONS": f"--require={IN}/{_VITE}"}
    return SuiteRequest((*program, *arguments), variables, given_along, (CASES,))


def named_paths(words: Sequence[str]) -> list[str]:
    """List the files and directories that a runner's command names, without globs."""
    start = start_of(words)
    given = words[start.end :] if start else ()
    left = list(_options_of(given))
    named: list[str] = []
    for word in given:
        is_kept = left[:1] == [word]
        if is_kept:
            left.pop(0)
        # After an option that may take a value, only its name identifies a test file.
        if (not is_kept or _TEST_FILE.search(word)) and "*" not in word and word != "run":
            named.append(word)
    return named


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
    seen: Counter[str] = Counter()
    cases: list[Case] = []
    for case in report.cases:
        name = " > ".join(" ".join(title.split()) or "(no title)" for title in case.titles)
        id_ = f"{case.file}::{name}" if name else case.file
        seen[id_] += 1
        cases.append(_case(case, id_ if seen[id_] == 1 else f"{id_} [#{seen[id_]}]"))
    return cases


def _case(one: NodeCase, id_: str) -> Case:
    lines = [line.rstrip() for line in one.message.splitlines() if line.strip()]
    return Case(
        id=id_,
        outcome=one.outcome,
        message=clip("\n".join(lines[:MESSAGE_LINES]), MESSAGE_LIMIT),
        expected=one.expected,
        actual=one.actual,
        detail=clip(one.detail, DETAIL_LIMIT),
        seconds=round(one.seconds, 3),
    )


def _patterns(ids: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the titles of each requested test; empty if a whole file is requested, or if they are too long."""
    titles = [tuple(CASE_MARK.sub("", id_).partition("::")[2].split(" > ")) for id_ in ids]
    too_long = sum(len(title) for item in titles for title in item) > PATTERNS_SIZE
    return () if too_long or any(item == ("",) for item in titles) else tuple(dict.fromkeys(titles))


def _kept(words: Sequence[str], runner: str) -> tuple[str, ...]:
    kept: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if not _DROPPED[runner].match(word):
            kept.append(word)
        elif _VALUED.match(word) and left and not left[0].startswith("-"):
            left.pop(0)
    return tuple(kept)


def _options_of(words: Sequence[str]) -> tuple[str, ...]:
    """Keep options and the words that may be their values; drop paths."""
    kept: list[str] = []
    may_be_value = False
    for word in words:
        if word.startswith("-") or may_be_value:
            kept.append(word)
        may_be_value = word.startswith("-") and "=" not in word and word not in ("--test", "-i", "--")
    return tuple(kept)


class _Asked(NamedTuple):
    """The task of a runner: the command's own options, the tests and their order."""

    given: tuple[str, ...]
    files: tuple[str, ...]
    patterns: tuple[tuple[str, ...], ...]
    vary: Variation


Arguments = tuple[tuple[str, ...], tuple[str, ...]]
"""The arguments after the program, and the names of Redstart's files among them."""


def _node(asked: _Asked) -> Arguments:
    reporter = "redstart_node.mjs"
    ours = (
        *(f"--test-name-pattern=/^{_escaped(title)}$/" for title in _titles(asked.patterns)),
        f"--test-reporter={IN}/{reporter}",
        f"--test-reporter-destination={OUT}/{CASES}",
        "--test-reporter=spec",
        "--test-reporter-destination=stdout",
    )
    rest = (*_options_of(asked.given), *asked.files) if asked.files else tuple(asked.given)
    return (*ours, *(rest if "--test" in rest else ("--test", *rest))), (reporter,)


def _titles(patterns: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """List the titles by which node selects tests: it runs a nested test only if the outer one is selected too.

    A title may contain the separator between titles, so adjacent titles are also joined.
    """
    found: dict[str, None] = {}
    for titles in patterns:
        for start in range(len(titles)):
            for end in range(start + 1, len(titles) + 1):
                found[" > ".join(titles[start:end])] = None
    return tuple(found)


def _jest(asked: _Asked) -> Arguments:
    reporter, order = "redstart_jest.cjs", "redstart_jest_order.cjs"
    ours = ("--ci", "--coverage=false", "--watchman=false", "--bail=0", "--reporters=default")
    ours += (f"--reporters={IN}/{reporter}", *((f"--testSequencer={IN}/{order}",) if asked.vary.order else ()))
    ours += (f"--testNamePattern={_joined(asked.patterns)}",) if asked.patterns else ()
    rest = (
        (*_options_of(asked.given), *ours, "--runTestsByPath", *asked.files) if asked.files else (*asked.given, *ours)
    )
    return rest, (reporter, *((order,) if asked.vary.order else ()))


def _vitest(asked: _Asked) -> Arguments:
    reporter = "redstart_vitest.mjs"
    words = (
        tuple(asked.given)[1:]
        if asked.given[:1] and asked.given[0] in ("run", "watch", "dev", "--run")
        else tuple(asked.given)
    )
    ours = ("--watch=false", "--bail=0", "--coverage.enabled=false", "--reporter=default")
    ours += (f"--reporter={IN}/{reporter}",)
    ours += ("--sequence.shuffle", f"--sequence.seed={asked.vary.seed or 1}") if asked.vary.order else ()
    ours += (f"--testNamePattern={_joined(asked.patterns)}",) if asked.patterns else ()
    rest = (*_options_of(words), *ours, *asked.files) if asked.files else (*words, *ours)
    return ("run", *rest), (reporter, _VITE)


def _mocha(asked: _Asked) -> Arguments:
    reporter, load = "redstart_mocha.cjs", "redstart_mocha_load.cjs"
    ours = ("--no-parallel", "--no-bail", f"--require={IN}/{load}", f"--reporter={IN}/{reporter}")
    ours += (f"--grep={_joined(asked.patterns)}",) if asked.patterns else ()
    return (*asked.given, *ours, *asked.files), (reporter, load)


_ARGUMENTS = {"node": _node, "jest": _jest, "vitest": _vitest, "mocha": _mocha}
_OWN = {"node": ("node", "--test"), "jest": ("jest",), "vitest": ("vitest",), "mocha": ("mocha",)}


def _joined(patterns: Sequence[Sequence[str]]) -> str:
    """Join titles with spaces, as Jest, Vitest and Mocha match them; a title itself may contain ` > `."""
    between = r"(?:\s>)?\s"
    return "|".join(f"^{between.join(map(_escaped, titles))}$" for titles in patterns)


def _escaped(title: str) -> str:
    """Escape a title for JavaScript's regular expressions; a space in it matches any run of whitespace."""
    return re.sub(r"\s+", r"\\s+", re.sub(r"[.*+?^${}()|\[\]\\/]", r"\\\g<0>", title))


class NodeRunner(SuiteRunner):
    """node's own runner, Jest, Vitest and Mocha."""

    def command(
        self,
        suite: Suite,
        environment: Environment,
        *,
        ids: Sequence[str],
        sentinel: Sequence[str],
        vary: Variation,
        test_cpu: int,
    ) -> SuiteRequest:
        return command(suite, ids=ids, vary=vary)

    def read(self, suite: Suite, completed: Completed) -> ReadCases:
        return ReadCases(read_node(completed), bool(completed.files.get(CASES)))

    def fault(self, suite: Suite, completed: Completed) -> RunFault | None:
        return (
            RunFault("No tests were collected.", SuiteProblem.no_tests) if _NO_TESTS.search(completed.output) else None
        )

    def absent(self, suite: Suite) -> str:
        return f"{suite.command[0]} is not installed where the tests run. Install what the project needs: npm ci."

    def added_words(self, suite: Suite, files: Sequence[str]) -> list[str]:
        return beside(named_paths(suite.command), files)

    def describe(self, suite: Suite) -> str:
        return "node:test" if suite.runner == "node" else suite.runner
