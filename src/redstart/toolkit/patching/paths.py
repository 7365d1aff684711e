"""Which file an edit means."""

from __future__ import annotations

from collections.abc import Sequence

from redstart.core.change import Reject

_SHOWN = 5


def resolve(named: str, names: Sequence[str], *, creates: bool = False) -> str | Reject:
    """The file that `named` is; where there is none, the only one that ends as it does or that it ends as.

    What creates a file is taken at its word. A path that is like no file is taken as it stands: it may be a new one.
    Several that it may be are a reject.
    """
    if named.startswith('"') or not named:
        return Reject(path=named, reason="give the path plain, without quotes")
    known = set(names)
    if named in known or creates:
        return named
    if (bare := named[2:]) in known and named[:2] in ("a/", "b/"):
        return bare
    if "\\" in named and (turned := named.replace("\\", "/")) in known:
        return turned
    if named.startswith("/") or ".." in named.split("/"):
        return _inside(named, names) or named
    ending = [name for name in names if name.endswith("/" + named)]
    if len(ending) == 1:
        return ending[0]
    if len(ending) > 1:
        shown = ", ".join(ending[:_SHOWN])
        return Reject(path=named, reason=f"there is no such file, and several end like it: {shown}")
    return _inside(named, names) or named


def _inside(named: str, names: Sequence[str]) -> str:
    """The one file, the longest, whose path stands at the end of `named`; a bare name is too little to go by."""
    within = [name for name in names if "/" in name and named.endswith("/" + name)]
    longest = max(map(len, within), default=0)
    return next((name for name in within if len(name) == longest), "")
