"""Probes: how one is read from an answer, and what is run for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from redstart.core.change import Probe, Snapshot
from redstart.core.frozen import clip
from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.toolkit.languages.registry import get_runner_ability

LONGEST, MOST_IDS = 8000, 10
PRINTED = 6000
LONGEST_ANSWER = 100_000

_LABEL = re.compile(r"^[ \t>*#`-]*PROBE[ \t*`]*:[ \t*`]*(?P<said>.*)$", re.MULTILINE)
_FENCE = re.compile(
    r"\s*^[ \t]*(?P<mark>```+|~~~+)[^\n`]*\n(?P<body>.*?)^[ \t]*(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL
)
_ID = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?`?(?P<id>[\w./\\-]+\.\w+(?:::[^\s`\[]+(?:\[[^`\n]*\])?)?|[\w.]+\.test_\w+)`?[ \t]*,?$"
)


class Snippets(Protocol):
    """Runs a snippet that a model wrote, with tight limits."""

    @property
    def language(self) -> str:
        """The language of a snippet, as people write it."""
        ...

    def build_execution(
        self, snippet: str, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
    ) -> Execution:
        """Run it where the suite runs, with the project importable; `paths` are the project's files."""
        ...


class ParsedProbe(NamedTuple):
    """A probe in an answer, and the rest of the answer without it."""

    probe: Probe
    remaining_text: str


def find_probe(answer: str) -> ParsedProbe | None:
    """Parse what the answer asks to run: after `PROBE:`, test IDs or a fenced snippet; None if there is nothing."""
    label = _LABEL.search(answer) if len(answer) <= LONGEST_ANSWER else None
    if label is None:
        return None
    before, after = answer[: label.start()], answer[label.end() :]
    fence = _FENCE.match(after)
    if fence is not None:
        snippet = fence["body"]
        is_usable = snippet.strip() and len(snippet) <= LONGEST and "\0" not in snippet
        return ParsedProbe(Probe(snippet=snippet), before + after[fence.end() :]) if is_usable else None
    ids, rest = _parse_ids(label["said"], after)
    return ParsedProbe(Probe(ids=tuple(dict.fromkeys(ids))[:MOST_IDS]), before + rest) if ids else None


def _parse_ids(label_text: str, following_text: str) -> tuple[list[str], str]:
    """Return the IDs on the line of the label, and on the lines right below it."""
    words = re.split(r"[\s,]+(?![^\[]*\])", label_text[:2000].strip("` \t"))
    ids = [match["id"] for word in words if (match := _ID.match(word))]
    lines = following_text.split("\n")
    index = 1
    while index < len(lines) and (match := _ID.match(lines[index])):
        ids.append(match["id"])
        index += 1
    return ids, "\n".join(lines[index:])


def get_snippet_language(suite: Suite) -> str:
    """Return the language of a snippet."""
    return get_runner_ability(suite.runner, lambda language: language.snippets).language


def fingerprint(probe: Probe) -> str:
    """Return the same hash for the same probe."""
    return hashlib.sha256(("probe\x1f" + probe.model_dump_json()).encode()).hexdigest()[:32]


def build_execution(
    probe: Probe, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
) -> Execution:
    """Build the execution of the snippet in the suite's language."""
    snippets = get_runner_ability(suite.runner, lambda language: language.snippets)
    return snippets.build_execution(probe.snippet, snapshot, environment, suite, paths)


def describe_run(probe: Probe, completed: Completed) -> str:
    """Describe a snippet's run for the next attempt."""
    return f"{clip(probe.snippet.strip(), 1500)}\n\n{describe_output(completed)}"


def describe_output(completed: Completed) -> str:
    """Describe how a snippet ended and what it printed."""
    ending = f"exit code {completed.exit_code}"
    if completed.cause not in (ExitCause.ok, ExitCause.failed):
        ending = f"ended: {completed.cause.value} ({ending})"
    output = clip(completed.output.strip(), PRINTED) or "(it printed nothing)"
    return f"{ending}; it printed:\n{output}"


def describe_outcomes(probe: Probe, cases: Sequence[Case], fault: str, output: str) -> str:
    """Describe executed tests for the next attempt: how each ended, and what was printed."""
    lines = [f"tests: {', '.join(probe.ids)}"]
    for case in cases[:MOST_IDS]:
        lines.append(f"{case.id}: {case.outcome.value} {clip(case.message, 500)}".rstrip())
        lines += [clip(case.detail, 1500)] if case.detail else []
    if not cases:
        lines.append(fault or "no test was run")
    return "\n".join((*lines, "it printed:", clip(output.strip(), PRINTED)))
