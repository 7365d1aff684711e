"""Find where a text or a pattern occurs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

from redstart.toolkit.looking.files import Files, FileText, ReadRefusal

MOST_FILES, MOST_BYTES = 20_000, 64 << 20
"""The limits of a search."""
MATCHES = 60
LONGEST_PATTERN = 500
CPU_SECONDS, WALL_SECONDS, MEMORY = 3, 15.0, 1 << 30
"""What a regular expression may use."""


class Match(NamedTuple):
    path: str
    line: int
    text: str


class Matches(NamedTuple):
    first: list[Match]
    more: bool = False
    left_out: int = 0
    """The number of files that were not searched because there are too many."""


def find_text(files: Files, folder: str, text: str, *, ignore_case: bool) -> Matches:
    """Find the lines that contain `text` literally."""
    wanted = text.casefold() if ignore_case else text
    texts, left_out = _texts(files, folder)
    found: list[Match] = []
    for item in texts:
        for number, line in enumerate(item.lines, 1):
            if wanted in (line.casefold() if ignore_case else line):
                found.append(Match(item.path, number, line))
                if len(found) > MATCHES:
                    return Matches(found[:MATCHES], True, left_out)
    return Matches(found, False, left_out)


def find_pattern(files: Files, folder: str, pattern: str, *, ignore_case: bool) -> Matches | ReadRefusal:
    """Find the lines that a regular expression matches; refuse an invalid or too expensive one."""
    if len(pattern) > LONGEST_PATTERN:
        return ReadRefusal(f"the pattern is longer than {LONGEST_PATTERN} characters")
    texts, left_out = _texts(files, folder)
    bodies = ["\n".join(text.lines).encode() for text in texts]
    request = {
        "pattern": pattern,
        "ignore_case": ignore_case,
        "most": MATCHES,
        "seconds": CPU_SECONDS,
        "memory": MEMORY,
        "texts": [(text.path, len(body)) for text, body in zip(texts, bodies, strict=True)],
    }
    said = _matched(json.dumps(request).encode() + b"\n" + b"".join(bodies))
    if isinstance(said, ReadRefusal):
        return said
    if "found" not in said:
        return ReadRefusal(f"the pattern cannot be used: {said.get('wrong', '')}")
    by_path = {text.path: text for text in texts}
    places = cast("list[tuple[str, int]]", said["found"])
    found = [Match(path, line, by_path[path].lines[line - 1]) for path, line in places]
    return Matches(found[:MATCHES], len(found) > MATCHES, left_out)


def _matched(request: bytes) -> dict[str, object] | ReadRefusal:
    too_long = ReadRefusal("the pattern takes too long: make it simpler, or search for a text")
    program = Path(__file__).with_name("matcher.py")
    try:
        done = subprocess.run(
            # Isolated from variables, the user's site folder and the files of the working folder.
            (sys.executable, "-I", "-S", str(program)),
            input=request,
            capture_output=True,
            timeout=WALL_SECONDS,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        return too_long
    if done.returncode != 0:
        return too_long
    return cast("dict[str, object]", json.loads(done.stdout))


def _texts(files: Files, folder: str) -> tuple[list[FileText], int]:
    """Return the texts to search, and the number of files that are too many."""
    paths = files.under(folder)
    texts: list[FileText] = []
    size = 0
    for number, path in enumerate(paths):
        text = files.text(path)
        size += sum(len(line) + 1 for line in text.lines) if isinstance(text, FileText) else 0
        if number >= MOST_FILES or size > MOST_BYTES:
            return texts, len(paths) - number
        if isinstance(text, FileText):
            texts.append(text)
    return texts, 0
