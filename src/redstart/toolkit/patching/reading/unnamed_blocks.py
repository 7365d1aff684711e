"""Code in an answer without a file name: it belongs to the only shown file that defines the same names."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.edited_code import get_edited_code
from redstart.toolkit.patching.reading.blocks import find_fences


def find_unnamed_edit(answer: str, shown_files: Mapping[str, str]) -> tuple[Edit, ...]:
    """Return the only edit that fenced code without a path can mean; empty if it is ambiguous.

    `shown_files` are the files that the model saw and may change. Code that it merely copied from them does not count.
    """
    lines = answer.removesuffix("\n").split("\n")
    codes = {path: code for path in shown_files if (code := get_edited_code(path))}
    files = {path: code.list_defined_names(shown_files[path]) for path, code in codes.items()}
    candidates: dict[tuple[str, str], Edit] = {}
    for fence in find_fences(lines):
        text = "".join(f"{line}\n" for line in lines[fence.start : fence.stop])
        names = {code: code.list_defined_names(text) for code in set(codes.values())} if fence.is_closed else {}
        places = [path for path, code in codes.items() if code in names and names[code] & files[path]]
        if len(places) != 1 or f"\n{text.strip()}\n" in f"\n{shown_files[places[0]]}\n":
            continue
        candidates[places[0], text.strip()] = Edit(kind=EditKind.whole, path=places[0], text=text)
    return tuple(candidates.values()) if len(candidates) == 1 else ()


def list_returned_files(answer: str, shown_files: Mapping[str, str]) -> tuple[str, ...]:
    """List files that an answer returns exactly as shown; empty if it contains other code too."""
    lines = answer.replace("\r\n", "\n").split("\n")
    texts = {"\n".join(lines[fence.start : fence.stop]).strip() for fence in find_fences(lines)}
    stripped = {path: text.replace("\r\n", "\n").strip() for path, text in shown_files.items()}
    if not texts <= {text for text in stripped.values() if text}:
        return ()
    return tuple(path for path, text in stripped.items() if text in texts)
