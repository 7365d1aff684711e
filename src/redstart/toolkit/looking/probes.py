"""Probes: reading one out of an answer, and what is run for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from typing import NamedTuple, Protocol

from redstart.core.change import Probe, Snapshot
from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.core.run import Suite
from redstart.core.shell import Completed, Environment, Execution, ExitCause
from redstart.toolkit.languages.registry import ability_of

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
    """How a snippet is run that a model wrote, with little of everything."""

    @property
    def language(self) -> str:
        """What a snippet is written in, as people write it."""
        ...

    def execution(
        self, snippet: str, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
    ) -> Execution:
        """Runs it where the suite runs, the project being importable there; `paths` are the project's files."""
        ...


class ParsedProbe(NamedTuple):
    """A probe in an answer, and what of the answer is left without it."""

    probe: Probe
    rest: str


def find_probe(answer: str) -> ParsedProbe | None:
    """What the answer asks to be run: after `PROBE:` test ids, or a fenced snippet. None where it asks for nothing."""
    label = _LABEL.search(answer) if len(answer) <= LONGEST_ANSWER else None
    if label is None:
        return None
    before, after = answer[: label.start()], answer[label.end() :]
    fenced = _FENCE.match(after)
    if fenced is not None:
        snippet = fenced["body"]
        usable = snippet.strip() and len(snippet) <= LONGEST and "\0" not in snippet
        return ParsedProbe(Probe(snippet=snippet), before + after[fenced.end() :]) if usable else None
    ids, rest = _ids(label["said"], after)
    return ParsedProbe(Probe(ids=tuple(dict.fromkeys(ids))[:MOST_IDS]), before + rest) if ids else None


def _ids(said: str, after: str) -> tuple[list[str], str]:
    """The ids on the line of the label, and on those right below it."""
    words = re.split(r"[\s,]+(?![^\[]*\])", said[:2000].strip("` \t"))
    found = [match["id"] for word in words if (match := _ID.match(word))]
    lines = after.split("\n")
    at = 1
    while at < len(lines) and (match := _ID.match(lines[at])):
        found.append(match["id"])
        at += 1
    return found, "\n".join(lines[at:])


def language_of(suite: Suite) -> str:
    """What a snippet is written in."""
    return ability_of(suite.runner, lambda language: language.snippets).language


def fingerprint(probe: Probe) -> str:
    """The same for the same probe."""
    return hashlib.sha256(("probe\x1f" + probe.model_dump_json()).encode()).hexdigest()[:32]


def execution(
    probe: Probe, snapshot: Snapshot, environment: Environment, suite: Suite, paths: Collection[str]
) -> Execution:
    """Runs the snippet in the suite's language."""
    snippets = ability_of(suite.runner, lambda language: language.snippets)
    return snippets.execution(probe.snippet, snapshot, environment, suite, paths)


def printed(probe: Probe, completed: Completed) -> str:
    """What the next attempt is told of a snippet's run."""
    how = f"exit code {completed.exit_code}"
    if completed.cause not in (ExitCause.ok, ExitCause.failed):
        how = f"ended: {completed.cause.value} ({how})"
    output = clip(completed.output.strip(), PRINTED) or "(it printed nothing)"
    return f"{clip(probe.snippet.strip(), 1500)}\n\n{how}; it printed:\n{output}"


def outcomes(probe: Probe, cases: Sequence[Case], fault: str, output: str) -> str:
    """What the next attempt is told of tests that were run: how each ended, and what was printed."""
    told = [f"tests: {', '.join(probe.ids)}"]
    for case in cases[:MOST_IDS]:
        told.append(f"{case.id}: {case.outcome.value} {clip(case.message, 500)}".rstrip())
        told += [clip(case.detail, 1500)] if case.detail else []
    if not cases:
        told.append(fault or "no test was run")
    return "\n".join((*told, "it printed:", clip(output.strip(), PRINTED)))
