"""Chooses and describes the form in which a question asks for edits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from redstart.core.change import EditKind
from redstart.core.run import AttemptSummary
from redstart.toolkit.base.text import data
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import language_of_file
from redstart.toolkit.prompts.render import form_of_answer, section

REJECTS = 2
"""After this many attempts whose edits of a file did not fit, the question asks for the whole file."""
LARGEST = 30_000


def form_words(asked: EditKind, *, shaped: bool = False) -> str:
    """Describe the form of the answer: edits in this form, as text or as JSON."""
    if not shaped:
        return form_of_answer(asked.value)
    return form_of_answer("json_whole" if asked is EditKind.whole else "json_block")


def brief_form(asked: EditKind, path: str, *, shaped: bool = False) -> str:
    """Describe the form briefly, with the path of a file that was shown: a small model copies examples literally."""
    kinds = (EditKind.whole, EditKind.block) if shaped else (EditKind.whole, EditKind.block, EditKind.diff)
    kind = asked if asked in kinds else EditKind.block
    form = form_of_answer(f"brief_{'json_' if shaped else ''}{kind.value}").replace("{path}", path)
    return form.replace("{head}", (language_of_file(path) or Language()).function_head)


def given_whole(paths: Sequence[str], read: Callable[[str], bytes | None]) -> str:
    """Build a section that asks for these whole files and shows their current text. Empty if there are none."""
    blocks: list[str] = []
    for path in paths:
        text = (read(path) or b"").decode(errors="replace")
        if text.strip() and len(text) <= LARGEST:
            blocks += [
                f"Edits of {path} did not fit. Give it as a whole: the path on a line of its own, then all of the file "
                "between ``` and ```, with nothing left out. It stands now as:",
                data(path, text, LARGEST + 1000),
            ]
    return section("Form of the edits", *blocks)


def often_rejected(history: Sequence[AttemptSummary]) -> tuple[str, ...]:
    """Find the files whose edits did not fit in several attempts."""
    counted = Counter(
        path
        for attempt in history
        if attempt.red is None and not attempt.diff and not attempt.refused
        for path in attempt.files
        if path in attempt.outcome
    )
    return tuple(path for path, times in counted.items() if times >= REJECTS)
