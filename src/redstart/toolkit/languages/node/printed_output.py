"""Read from Vitest's own output what each failing test printed.

With Mocha, Redstart's reporter records it (`inside/redstart_mocha_output.cjs`). Jest and node's own runner report what
a file prints, but not which of its tests printed it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from redstart.core.frozen import clip
from redstart.core.report import CAPTURED_LIMIT, Case

_HEADING = re.compile(r"^(?P<stream>stdout|stderr) \| (?P<test>\S.*)$")
_END = re.compile(r"^(?: [❯✓×↓✗] |⎯{3,}| FAIL | RUN | Test Files )")
"""A line of the summary, which follows what the tests of a file print."""


def add_printed_output(cases: Sequence[Case], output: str) -> list[Case]:
    """Return the cases, of which the failing ones have what they printed, as far as `output` shows it."""
    printed: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"stdout": [], "stderr": []})
    lines: list[str] = []
    for line in output.splitlines():
        if heading := _HEADING.match(line):
            lines = printed[heading["test"]][heading["stream"]]
        elif _END.match(line):
            lines = []
        else:
            lines.append(line.rstrip())
    texts = {name: {key: _join(lines) for key, lines in streams.items()} for name, streams in printed.items()}
    names = {case.id: case.id.replace("::", " > ", 1) for case in cases if case.is_red}
    return [case.model_copy(update=texts[names[case.id]]) if names.get(case.id) in texts else case for case in cases]


def _join(lines: Sequence[str]) -> str:
    return clip("\n".join(lines).strip("\n"), CAPTURED_LIMIT)
