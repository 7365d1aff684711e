"""Find words in the code."""

from __future__ import annotations

import os
import re
import shutil
import string
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from redstart.toolkit.base.code_files import MAX_BYTES, Read, is_readable, is_searchable

COMMON = 100
"""Maximum files with a word. A more common word says little and is left out."""

_WORD = frozenset((string.ascii_letters + string.digits + "_").encode())
_SPACED = bytes(byte if byte in _WORD else ord(" ") for byte in range(256))
_SCRIPT_DEFINES = re.compile(rb"(?:export )?(?:default )?(?:abstract )?(?:async )?(?:function|class|const|let)")
_SECONDS = 60


class WordHit(NamedTuple):
    """A line that contains the whole word at least once."""

    path: str
    line: int
    word: str
    defines: bool
    """Whether the line is the `def`, `class`, `function` or `const` of that name."""


Search = Callable[[Sequence[str]], list[WordHit]]
"""Finds identifiers and ignores other words. The result is sorted, and the same for every implementation."""


class _Text(NamedTuple):
    path: str
    data: bytes


def walk_search(files: Iterable[str], read: Read) -> Search:
    """Search the files directly. They are read at the first query and kept."""
    texts: list[_Text] = []
    unread = sorted({path for path in files if is_searchable(path)})

    def search(words: Sequence[str]) -> list[WordHit]:
        while unread:
            path = unread.pop(0)
            data = read(path)
            if data is not None and is_readable(data):
                texts.append(_Text(path, data))
        return sorted(_find(_identifiers(words), texts))

    return search


def ripgrep_search(folder: Path) -> Search:
    """Search the files of the folder that ripgrep selects; without ripgrep, search all files."""

    def search(words: Sequence[str]) -> list[WordHit]:
        wanted = _identifiers(words)
        if not wanted:
            return []
        names = _named_by_ripgrep(folder, wanted)
        return walk_search(_all_files(folder) if names is None else names, lambda path: _read(folder, path))(wanted)

    return search


def _identifiers(words: Sequence[str]) -> list[str]:
    return sorted({word for word in words if word.isidentifier() and word.isascii()})


def _find(words: Sequence[str], texts: Sequence[_Text]) -> Iterator[WordHit]:
    # One pass that splits every file costs less than one pass per word.
    wanted = frozenset(word.encode() for word in words)
    holders: dict[bytes, list[_Text]] = {word: [] for word in sorted(wanted)}
    for text in texts:
        for word in wanted.intersection(text.data.translate(_SPACED).split()):
            holders[word].append(text)
    for word, holding in holders.items():
        if len(holding) <= COMMON:
            for path, data in holding:
                yield from _in_file(path, data, word)


def _in_file(path: str, data: bytes, needle: bytes) -> list[WordHit]:
    lines: dict[int, bool] = {}
    line, counted = 1, 0
    at = data.find(needle)
    while at >= 0:
        end = at + len(needle)
        if (at == 0 or data[at - 1] not in _WORD) and (end == len(data) or data[end] not in _WORD):
            line += data.count(b"\n", counted, at)
            counted = at
            lines[line] = lines.get(line, False) or _defined(data, at)
        at = data.find(needle, end)
    return [WordHit(path, number, needle.decode(), defines) for number, defines in lines.items()]


def _defined(data: bytes, at: int) -> bool:
    before = data[max(at - 9, 0) : at]
    if not before.endswith((b"def ", b"class ", b"function ", b"const ", b"let ")):
        return False
    start = data[data.rfind(b"\n", 0, at) + 1 : at].strip()
    return start in (b"def", b"async def", b"class") or _SCRIPT_DEFINES.fullmatch(start) is not None


def _named_by_ripgrep(folder: Path, words: Sequence[str]) -> list[str] | None:
    """List the files that contain any of the words; None if ripgrep is missing or fails."""
    program = shutil.which("rg")
    if program is None:
        return None
    command = [program, "--no-config", "--no-ignore", "--hidden", "--no-messages", "--encoding", "none"]
    command += [
        "--max-filesize",
        str(MAX_BYTES),
        "--files-with-matches",
        "--null",
        "--fixed-strings",
        "--glob",
        "!.git",
    ]
    command += [argument for word in words for argument in ("-e", word)]
    try:
        done = subprocess.run([*command, "./"], cwd=folder, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode > 1:
        return None
    return [os.fsdecode(name).removeprefix("./") for name in done.stdout.split(b"\0") if name]


def _all_files(folder: Path) -> list[str]:
    found: list[str] = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        found += [(Path(top) / name).relative_to(folder).as_posix() for name in names if name != ".git"]
    return found


def _read(folder: Path, path: str) -> bytes | None:
    place = folder / path
    try:
        return None if place.is_symlink() or not place.is_file() else place.read_bytes()
    except OSError:
        return None
