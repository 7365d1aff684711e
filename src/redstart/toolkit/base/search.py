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

MAX_FILES_PER_WORD = 100
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
        return sorted(_find(_select_identifiers(words), texts))

    return search


def ripgrep_search(folder: Path) -> Search:
    """Search the files of the folder that ripgrep selects; without ripgrep, search all files."""

    def search(words: Sequence[str]) -> list[WordHit]:
        identifiers = _select_identifiers(words)
        if not identifiers:
            return []
        names = _list_matching_files(folder, identifiers)
        return walk_search(_list_all_files(folder) if names is None else names, lambda path: _read(folder, path))(
            identifiers
        )

    return search


def _select_identifiers(words: Sequence[str]) -> list[str]:
    return sorted({word for word in words if word.isidentifier() and word.isascii()})


def _find(words: Sequence[str], texts: Sequence[_Text]) -> Iterator[WordHit]:
    # One pass that splits every file costs less than one pass per word.
    encoded = frozenset(word.encode() for word in words)
    holders: dict[bytes, list[_Text]] = {word: [] for word in sorted(encoded)}
    for text in texts:
        for word in encoded.intersection(text.data.translate(_SPACED).split()):
            holders[word].append(text)
    for word, holding in holders.items():
        if len(holding) <= MAX_FILES_PER_WORD:
            for path, data in holding:
                yield from _in_file(path, data, word)


def _in_file(path: str, data: bytes, needle: bytes) -> list[WordHit]:
    lines: dict[int, bool] = {}
    line, counted_offset = 1, 0
    offset = data.find(needle)
    while offset >= 0:
        end = offset + len(needle)
        if (offset == 0 or data[offset - 1] not in _WORD) and (end == len(data) or data[end] not in _WORD):
            line += data.count(b"\n", counted_offset, offset)
            counted_offset = offset
            lines[line] = lines.get(line, False) or _is_definition(data, offset)
        offset = data.find(needle, end)
    return [WordHit(path, number, needle.decode(), defines) for number, defines in lines.items()]


def _is_definition(data: bytes, offset: int) -> bool:
    prefix = data[max(offset - 9, 0) : offset]
    if not prefix.endswith((b"def ", b"class ", b"function ", b"const ", b"let ")):
        return False
    start = data[data.rfind(b"\n", 0, offset) + 1 : offset].strip()
    return start in (b"def", b"async def", b"class") or _SCRIPT_DEFINES.fullmatch(start) is not None


def _list_matching_files(folder: Path, words: Sequence[str]) -> list[str] | None:
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
        completed = subprocess.run([*command, "./"], cwd=folder, capture_output=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if completed.returncode > 1:
        return None
    return [os.fsdecode(name).removeprefix("./") for name in completed.stdout.split(b"\0") if name]


def _list_all_files(folder: Path) -> list[str]:
    paths: list[str] = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        paths += [(Path(top) / name).relative_to(folder).as_posix() for name in names if name != ".git"]
    return paths


def _read(folder: Path, path: str) -> bytes | None:
    place = folder / path
    try:
        return None if place.is_symlink() or not place.is_file() else place.read_bytes()
    except OSError:
        return None
