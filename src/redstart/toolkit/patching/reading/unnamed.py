"""Code in an answer without a file name: it belongs to the only shown file that defines the same names."""

from __future__ import annotations

from collections.abc import Mapping

from redstart.core.change import Edit, EditKind
from redstart.toolkit.patching.edited_code import edited_code
from redstart.toolkit.patching.reading.blocks import fences


def unnamed(answer: str, shown: Mapping[str, str]) -> tuple[Edit, ...]:
    """Return the only edit that fenced code without a path can mean; empty if it is ambiguous.

    `shown` are the files that the model saw and may change. Code that it merely copied from them does not count.
    """
    lines = answer.removesuffix("\n").split("\n")
    codes = {path: code for path in shown if (code := edited_code(path))}
    files = {path: code.defined(shown[path]) for path, code in codes.items()}
    found: dict[tuple[str, str], Edit] = {}
    for fence in fences(lines):
        text = "".join(f"{line}\n" for line in lines[fence.start : fence.stop])
        names = {code: code.defined(text) for code in set(codes.values())} if fence.closed else {}
        places = [path for path, code in codes.items() if code in names and names[code] & files[path]]
        if len(places) != 1 or f"\n{text.strip()}\n" in f"\n{shown[places[0]]}\n":
            continue
        found[places[0], text.strip()] = Edit(kind=EditKind.whole, path=places[0], text=text)
    return tuple(found.values()) if len(found) == 1 else ()


def given_back(answer: str, shown: Mapping[str, str]) -> tuple[str, ...]:
    """List files that an answer returns exactly as shown; empty if it contains other code too."""
    lines = answer.replace("\r\n", "\n").split("\n")
    texts = {"\n".join(lines[fence.start : fence.stop]).strip() for fence in fences(lines)}
    plain = {path: text.replace("\r\n", "\n").strip() for path, text in shown.items()}
    if not texts <= {text for text in plain.values() if text}:
        return ()
    return tuple(path for path, text in plain.items() if text in texts)
