"""An overview of a project: its files, and what each of them defines."""

from __future__ import annotations

from collections.abc import Callable

from redstart.toolkit.languages.registry import is_code
from redstart.toolkit.model_tools.symbols import list_symbols
from redstart.toolkit.model_tools.visible_files import Files, FileText

MAX_NAMES_PER_FILE = 30
"""Names listed of one file."""
_LINE = 160


def outline(files: Files, is_test: Callable[[str], bool], max_characters: int) -> str:
    """List every file, with the heads of the public names in code; whole files, up to `max_characters`.

    Code comes first, then the tests by their paths alone, then the other files. Omitted files are counted.
    """
    code = [path for path in files.paths if is_code(path) and not is_test(path)]
    tests = [path for path in files.paths if is_code(path) and is_test(path)]
    others = sorted(set(files.paths) - {*code, *tests})
    blocks: list[str] = []
    remaining, omitted = max_characters, 0
    for block in (*(_outline_file(files, path) for path in code), *tests, *others):
        if len(block) + 1 > remaining:
            omitted += 1
            continue
        blocks.append(block)
        remaining -= len(block) + 1
    return "\n".join((*blocks, f"({omitted} more files)")) if omitted else "\n".join(blocks)


def _outline_file(files: Files, path: str) -> str:
    text = files.read_text(path)
    if not isinstance(text, FileText):
        return path
    public = [
        symbol
        for symbol in list_symbols(text)
        if not symbol.name.rpartition(".")[2].startswith("_") or "__init__" in symbol.name
    ]
    heads = [f"  {item.head[:_LINE]}" for item in public[:MAX_NAMES_PER_FILE]]
    return "\n".join((path, *heads))
