"""From a model's words to edits."""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from redstart.core.change import Edit
from redstart.core.learning import Reflection
from redstart.core.noun import clip
from redstart.toolkit.patching.reading.blocks import NOT_COMPLETE, blocks
from redstart.toolkit.patching.reading.diffs import diffs
from redstart.toolkit.patching.reading.envelopes import envelopes
from redstart.toolkit.patching.reading.unnamed import unnamed
from redstart.toolkit.patching.reading.unwrap import from_json, outdented
from redstart.toolkit.patching.reading.whole_files import wholes

_LABEL = re.compile(
    r"^[ \t>*#-]*(?P<label>WHY|ROOT CAUSE|WHAT FAILED|TRY NEXT|TEST CHANGE)[ \t*]*:[ \t*]*(?P<text>.+)$", re.MULTILINE
)

MOST_CHARACTERS, MOST_EDITS = 1_000_000, 300
"""Of an answer. What is larger is no fix that anybody reads, and would take minutes to look through."""


class Parsed(NamedTuple):
    """`fault` says why there is no edit, in words that can go back to the model."""

    edits: tuple[Edit, ...]
    why: str = ""
    reflection: Reflection | None = None
    fault: str = ""
    test_change: str = ""
    """Why a test would have to change, where the answer says so openly."""
    unchanged: bool = False
    """Whether there is no edit because the answer gives files back as they are."""


def parse(answer: str, shown: Mapping[str, str] | None = None) -> Parsed:
    """The edits in an answer, whatever prose or fences are around them. Never raises.

    One edit that is cut off makes the whole answer unusable: a part of a change is no change. `shown` are the files
    that the model was shown and may change, by path: code that names none of them may still belong to one.
    """
    if len(answer) > MOST_CHARACTERS:
        return Parsed((), fault=f"the answer is longer than {MOST_CHARACTERS} characters: give only what changes")
    answer = answer.replace("\r\n", "\n")
    labels = {found["label"]: clip(found["text"].strip(), 400) for found in _LABEL.finditer(answer)}
    edits, fault = _edits(answer)
    for unwrapped in (outdented(answer), html.unescape(answer), from_json(answer)):
        if not edits and unwrapped not in ("", answer):
            edits, other = _edits(unwrapped)
            fault = fault or other
    if not edits and shown:
        edits = unnamed(answer, shown)
    if len(edits) > MOST_EDITS:
        edits, fault = (), f"the answer holds {len(edits)} edits: at most {MOST_EDITS} can be made at once"
    reflection = Reflection(
        root_cause=labels.get("ROOT CAUSE", ""),
        what_failed=labels.get("WHAT FAILED", ""),
        try_next=labels.get("TRY NEXT", ""),
    )
    said = reflection if any((reflection.root_cause, reflection.what_failed, reflection.try_next)) else None
    fault = "" if edits else fault or _why_none(answer)
    return Parsed(edits, labels.get("WHY", ""), said, fault, labels.get("TEST CHANGE", ""))


def fingerprint(edits: Sequence[Edit]) -> str:
    """The same for the same change: blanks at the ends of lines and the order of edits do not count."""
    parts = sorted("\x1f".join((edit.path, _trim(edit.search), _trim(edit.text))) for edit in edits)
    return hashlib.sha256("\x1e".join(parts).encode(errors="replace")).hexdigest()[:32] if parts else ""


def paths(edits: Sequence[Edit]) -> tuple[str, ...]:
    """The files that the edits name."""
    return tuple(sorted({edit.path for edit in edits}))


def _edits(answer: str) -> tuple[tuple[Edit, ...], str]:
    lines = answer.removesuffix("\n").split("\n")
    enclosed = envelopes(lines, answer.endswith("\n"))
    searched = blocks(enclosed.rest) if not enclosed.fault else enclosed
    if searched.fault:
        return (), searched.fault
    found = (*enclosed.edits, *searched.edits, *diffs(searched.rest, answer.endswith("\n")))
    if found:
        return tuple(edit.model_copy(update={"number": number}) for number, edit in enumerate(found, 1)), ""
    whole = wholes(lines)
    return whole.edits, whole.fault


def _trim(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def _why_none(answer: str) -> str:
    if not answer.strip():
        return "the answer was empty"
    if "<<<<<" in answer or "SEARCH" in answer:
        return NOT_COMPLETE
    return "the answer holds no edit: no search/replace block, no diff and no whole file"
