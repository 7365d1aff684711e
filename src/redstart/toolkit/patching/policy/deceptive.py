"""Names and texts that deceive: what a path or a line shows is not what it is, on this system or on another."""

from __future__ import annotations

import re
import unicodedata

LONGEST_NAME, LONGEST_PATH, DEEPEST = 120, 400, 20
_DEVICES = re.compile(r"(?:con|prn|aux|nul|com\d|lpt\d)(?:\..*)?", re.IGNORECASE)
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of writing, so that a line reads otherwise than it runs."""
_BINARY = re.compile(rb"^Binary files (?:a/(.*)|/dev/null) and (?:b/(.*)|/dev/null) differ$", re.MULTILINE)


def odd_path(path: str) -> str:
    """Why a new path is refused for its name alone; empty where it is an ordinary one."""
    parts = path.split("/")
    if len(parts) > DEEPEST or len(path) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in parts):
        return "its path is too long"
    if any(not letter.isprintable() or unicodedata.category(letter) == "Cf" for letter in path):
        return "its path holds characters that cannot be seen"
    if any(letter in '\\:*?"<>|' for letter in path) or any(part.endswith((".", " ")) for part in parts):
        return "its path means something else on another system"
    if parts[0].startswith(("~", "-")) or any(part.startswith(" ") or _DEVICES.fullmatch(part) for part in parts):
        return "its path means something else to a shell or on another system"
    if any(len(_scripts(part)) > 1 or (part.startswith(".") and not part.isascii()) for part in parts):
        return "its name mixes letters that look alike"
    return ""


def _scripts(name: str) -> set[str]:
    """Which of the scripts whose letters are mistaken for one another a name is written in."""
    told = (unicodedata.name(letter, "").partition(" ")[0] for letter in name if letter.isalpha())
    return {script for script in told if script in ("LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE")}


def odd_text(diff: bytes) -> str:
    """Why the lines that a diff adds are refused; empty where they are plain text."""
    if _BINARY.search(diff):
        return "it adds a file that is no text"
    added = (line[1:] for line in diff.decode(errors="replace").splitlines() if line.startswith("+"))
    if any(_TURNS.search(line) for line in added):
        return "it adds characters that change the direction of writing: the code would not run as it reads"
    return ""
