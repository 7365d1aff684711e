"""In which form edits are asked for, where it is not the one that the question describes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.prompts.render import data, section

REJECTS = 2
"""After so many attempts whose edits of a file did not fit, the whole file is asked for."""
LARGEST = 30_000

_FORMS = {
    EditKind.block: "",
    EditKind.diff: "Give unified diffs instead of the blocks described above: `--- a/path`, `+++ b/path`, then hunks "
    "with three lines of context around every change. Copy context and removed lines exactly.",
    EditKind.whole: "Give whole files instead of the blocks described above: the path on a line of its own, then all "
    "of the file between ``` and ```, with nothing left out.",
    EditKind.envelope: "Give one patch instead of the blocks described above: `*** Begin Patch`, for each file "
    "`*** Update File: path` (or `*** Add File: path`), then hunks that begin with `@@` and hold lines after a blank, "
    "`-` or `+`, and at the end `*** End Patch`.",
}


def form(asked: EditKind, whole: Sequence[str] = (), read: Callable[[str], bytes | None] = lambda _: None) -> str:
    """What to say of the form; empty for the usual one. `whole` are files to be given as a whole: they are shown so."""
    blocks = [_FORMS[asked]]
    for path in whole:
        text = (read(path) or b"").decode(errors="replace")
        if text.strip() and len(text) <= LARGEST:
            blocks += [
                f"Edits of {path} did not fit. Give it as a whole: the path on a line of its own, then all of the file "
                "between ``` and ```, with nothing left out. It stands now as:",
                data(path, text, LARGEST + 1000),
            ]
    return section("Form of the edits", *blocks)


def often_rejected(history: Sequence[AttemptSummary]) -> tuple[str, ...]:
    """The files whose edits did not fit in several attempts."""
    counted = Counter(
        path
        for attempt in history
        if attempt.red is None and not attempt.diff and not attempt.refused
        for path in attempt.files
        if path in attempt.outcome
    )
    return tuple(path for path, times in counted.items() if times >= REJECTS)
