"""Read from pytest's own output what each failing test printed.

pytest captures what a test prints and shows it below the test's traceback, by phase. The report holds none of it. The
text comes from the sandbox: a test can imitate pytest's headings, and then only its own output is read wrongly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.core.frozen import clip
from redstart.core.report import CAPTURED_LIMIT, Case

_TITLE = re.compile(r"^_+ (?P<title>\S.*?) _+$")
_PHASE = re.compile(r"^ERROR at (?:setup|teardown) of ")
_CAPTURED = re.compile(r"^-+ Captured (?P<stream>stdout|stderr|log) (?:setup|call|teardown) -+$")
_END = re.compile(r"^(?=.{60})(?:=+ .+ =+|-+ .+ -+)$")
"""The heading of another part of the output, as wide as the terminal. A test prints shorter ones."""
_LAST = "= end =".center(80, "=")


class FailureBlock(NamedTuple):
    """What pytest shows about one failure."""

    title: str
    """The test's name with its classes: `TestCart.test_total[3]`."""
    traceback: str
    stdout: str
    stderr: str


def add_captured_output(cases: Sequence[Case], output: str) -> list[Case]:
    """Return the cases, of which the failing ones have what they printed, as far as `output` shows it."""
    titles: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        if case.is_red:
            titles[_get_title(case.id)].append(case)
    blocks: dict[str, FailureBlock] = {}
    for block in _list_blocks(output, titles):
        case = _find_case(block, titles[block.title], blocks)
        if case is not None:
            blocks[case.id] = block
    return [_with_output(case, blocks[case.id]) if case.id in blocks else case for case in cases]


def _get_title(id_: str) -> str:
    name, bracket, parameters = id_.partition("[")
    return name.partition("::")[2].replace("::", ".") + bracket + parameters


def _list_blocks(output: str, titles: dict[str, list[Case]]) -> Iterator[FailureBlock]:
    """List the blocks that show output, under titles of failing tests."""
    title, parts, part = "", dict[str, list[str]](), ""
    for line in (*output.splitlines(), _LAST):
        heading = _TITLE.match(line)
        heading_title = _PHASE.sub("", heading["title"]) if heading else ""
        captured = _CAPTURED.match(line)
        if captured:
            part = "stdout" if captured["stream"] == "stdout" else "stderr"
        elif heading_title in titles or heading_title.startswith("ERROR collecting ") or _END.match(line):
            if title and (parts.get("stdout") or parts.get("stderr")):
                yield FailureBlock(title, *("\n".join(parts.get(name, ())) for name in ("", "stdout", "stderr")))
            title, parts, part = heading_title if heading_title in titles else "", {}, ""
        else:
            parts.setdefault(part, []).append(line.rstrip())


def _find_case(block: FailureBlock, candidates: Sequence[Case], taken: dict[str, FailureBlock]) -> Case | None:
    """Find the case that the block is about. Tests of the same name in several files differ by their tracebacks.

    A test that fails a second time, in its teardown, has a second block, which repeats what the first one shows.
    """
    alike = [case for case in candidates if _get_last_line(block.traceback) in case.detail]
    if len(candidates) == 1:
        alike = list(candidates)
    return next((case for case in alike if case.id not in taken), None)


def _get_last_line(text: str) -> str:
    """Return the last line, which names the place of the failure."""
    return next((line for line in reversed(text.splitlines()) if line.strip()), "")


def _with_output(case: Case, block: FailureBlock) -> Case:
    update = {"stdout": clip(block.stdout, CAPTURED_LIMIT), "stderr": clip(block.stderr, CAPTURED_LIMIT)}
    return case.model_copy(update=update)
