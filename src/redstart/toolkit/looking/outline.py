"""An overview of a project: its files, and what each of them defines."""

from __future__ import annotations

from collections.abc import Callable

from redstart.toolkit.languages.registry import is_code
from redstart.toolkit.looking.files import Files, FileText
from redstart.toolkit.looking.symbols import symbols

OF_A_FILE = 30
"""Names listed of one file."""
_LINE = 160


def outline(files: Files, is_test: Callable[[str], bool], most: int) -> str:
    """List every file, with the heads of the public names in code; whole files, up to `max_characters`.

    Code comes first, then the tests by their paths alone, then the other files. Omitted files are counted.
    """
    code = [path for path in files.paths if is_code(path) and not is_test(path)]
    tests = [path for path in files.paths if is_code(path) and is_test(path)]
    rest = sorted(set(files.paths) - {*code, *tests})
    told: list[str] = []
    room, left = most, 0
    for block in (*(_of_code(files, path) for path in code), *tests, *rest):
        if len(block) + 1 > room:
            left += 1
            continue
        told.append(block)
        room -= len(block) + 1
    return "\n".join((*told, f"({left} more files)")) if left else "\n".join(told)


def _of_code(files: Files, path: str) -> str:
    text = files.text(path)
    if not isinstance(text, FileText):
        return path
    public = [
        symbol
        for symbol in symbols(text)
        if not symbol.name.rpartition(".")[2].startswith("_") or "__init__" in symbol.name
    ]
    heads = [f"  {item.head[:_LINE]}" for item in public[:OF_A_FILE]]
    return "\n".join((path, *heads))
