"""Find where a text or a pattern occurs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple, cast

from redstart.toolkit.model_tools.visible_files import Files, FileText, ReadRefusal

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
    has_more: bool = False
    left_out: int = 0
    """The number of files that were not searched because there are too many."""


def find_text(files: Files, folder: str, text: str, *, ignore_case: bool) -> Matches:
    """Find the lines that contain `text` literally."""
    query = text.casefold() if ignore_case else text
    texts, left_out = _collect_texts(files, folder)
    matches: list[Match] = []
    for item in texts:
        for number, line in enumerate(item.lines, 1):
            if query in (line.casefold() if ignore_case else line):
                matches.append(Match(item.path, number, line))
                if len(matches) > MATCHES:
                    return Matches(matches[:MATCHES], True, left_out)
    return Matches(matches, False, left_out)


def find_pattern(files: Files, folder: str, pattern: str, *, ignore_case: bool) -> Matches | ReadRefusal:
    """Find the lines that a regular expression matches; refuse an invalid or too expensive one."""
    if len(pattern) > LONGEST_PATTERN:
        return ReadRefusal(f"the pattern is longer than {LONGEST_PATTERN} characters")
    texts, left_out = _collect_texts(files, folder)
    bodies = ["\n".join(text.lines).encode() for text in texts]
    request = {
        "pattern": pattern,
        "ignore_case": ignore_case,
        "most": MATCHES,
        "seconds": CPU_SECONDS,
        "memory": MEMORY,
        "texts": [(text.path, len(body)) for text, body in zip(texts, bodies, strict=True)],
    }
    response = _run_matcher(json.dumps(request).encode() + b"\n" + b"".join(bodies))
    if isinstance(response, ReadRefusal):
        return response
    if "found" not in response:
        return ReadRefusal(f"the pattern cannot be used: {response.get('wrong', '')}")
    by_path = {text.path: text for text in texts}
    places = cast("list[tuple[str, int]]", response["found"])
    matches = [Match(path, line, by_path[path].lines[line - 1]) for path, line in places]
    return Matches(matches[:MATCHES], len(matches) > MATCHES, left_out)


def _run_matcher(request: bytes) -> dict[str, object] | ReadRefusal:
    too_long = ReadRefusal("the pattern takes too long: make it simpler, or search for a text")
    program = Path(__file__).with_name("matcher.py")
    try:
        completed = subprocess.run(
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
    if completed.returncode != 0:
        return too_long
    return cast("dict[str, object]", json.loads(completed.stdout))


def _collect_texts(files: Files, folder: str) -> tuple[list[FileText], int]:
    """Return the texts to search, and the number of files that are too many."""
    paths = files.list_paths(folder)
    texts: list[FileText] = []
    size = 0
    for number, path in enumerate(paths):
        text = files.read_text(path)
        size += sum(len(line) + 1 for line in text.lines) if isinstance(text, FileText) else 0
        if number >= MOST_FILES or size > MOST_BYTES:
            return texts, len(paths) - number
        if isinstance(text, FileText):
            texts.append(text)
    return texts, 0
