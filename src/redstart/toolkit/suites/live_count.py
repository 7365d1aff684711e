"""Count finished tests from a runner's output while it runs: for progress display, never for a result."""

from __future__ import annotations

import codecs
import re

LONGEST = 2_000
"""The longest line, in characters, that is examined."""

_COLLECTED_LINE = re.compile(r"^collected (\d{1,7}) items?(?: / .*?(\d{1,7}) selected)?")
_OUTCOME_LETTERS = re.compile(r"^(?:[\w./\\ -]+\.py )?([.FEsxXu]+)(?:\s*\[\s*\d{1,3}%\])?\s*$")
"""pytest's and unittest's letters and dots, one for each test, after the file name if pytest shows it."""
_NAMED_OUTCOME = re.compile(
    r"(?:\s(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b.*\[\s*\d{1,3}%\]|\.\.\. (?:ok|FAIL|ERROR|skipped.*))\s*$"
)
"""One line for each test, from `pytest -v` and `unittest -v`."""
_TAP = re.compile(r"^(?:✔|✖|(?:not )?ok \d+ )")
"""Node's own runner, for top-level tests."""


class OutcomeCounter:
    """Takes output in chunks. `done` counts the finished tests and `total` all tests; 0 means unknown."""

    def __init__(self, total: int = 0) -> None:
        self.finished = 0
        self.total = total
        self._finished_in_lines = 0
        self._line = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, chunk: bytes) -> bool:
        """Read a chunk and return whether a count changed. A test's own output may be miscounted: display only."""
        before = self.finished, self.total
        *complete_lines, partial_line = (self._line + self._decoder.decode(chunk)).split("\n")
        for line in complete_lines:
            self._finished_in_lines += self._count(line)
        self._line = partial_line[:LONGEST]
        self.finished = self._finished_in_lines + self._count(self._line)
        if self.total:
            self.finished = min(self.finished, self.total)
        return (self.finished, self.total) != before

    def _count(self, line: str) -> int:
        if not line or len(line) > LONGEST:
            return 0
        if match := _COLLECTED_LINE.match(line):
            self.total = int(match[2] or match[1])
            return 0
        if letters := _OUTCOME_LETTERS.match(line):
            return len(letters[1])
        return 1 if _NAMED_OUTCOME.search(line) or _TAP.match(line) else 0
