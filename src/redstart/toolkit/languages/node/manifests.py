"""Dependencies of Node.js projects, read as data from `package.json` and lock files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.allowed import is_name
from redstart.toolkit.installs.names import foreign_letters
from redstart.toolkit.installs.tables import as_table
from redstart.toolkit.languages.node.packages import KEY

KINDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_RANGE = re.compile(r"[\w\s.^~<>=|*+-]*", re.ASCII)
_KEY = re.compile(r"(?:^|/)node_modules/((?:@[^/]+/)?[^/]+)$")

Found = Iterator[Requirement | PackageRefusal]


def of_package(path: str, table: Mapping[str, object]) -> Found:
    for kind in KINDS:
        for name, wanted in as_table(table.get(kind)).items():
            yield _requirement(path, kind, name, wanted)
    for key in ("overrides", "resolutions"):
        for name, wanted in _leaves(as_table(table.get(key))):
            if not _RANGE.fullmatch(wanted.removeprefix("$")):
                yield PackageRefusal(name=name, reason=f"{_shown(name)} is replaced by {_shown(wanted)} in {path}.")


def of_lock(path: str, table: Mapping[str, object]) -> Found:
    """Yield a refusal for each package that a lock fetches from elsewhere or under an alias; skip other entries."""
    for key, entry in as_table(table.get("packages")).items():
        found = _KEY.search(key)
        if found is None or as_table(entry).get("link") is True:
            continue
        name, resolved, named = found[1], as_table(entry).get("resolved"), as_table(entry).get("name")
        if isinstance(named, str) and named != name:
            yield PackageRefusal(name=name, reason=f"{path} puts {_shown(named)} in the place of {_shown(name)}.")
        elif isinstance(resolved, str) and not _is_of_a_registry(name, resolved):
            yield PackageRefusal(
                name=name, reason=f"{path} gets {_shown(name)} from elsewhere than its page at the registry."
            )


def _is_of_a_registry(name: str, resolved: str) -> bool:
    """Return whether an address has the form that every registry uses for this package's archives."""
    base = re.escape(name.rpartition("/")[2])
    return bool(re.fullmatch(rf"https?://[^?#]+/{re.escape(name)}/-/{base}-[^/?#]+\.tgz", resolved))


def _requirement(path: str, kind: str, name: str, wanted: object) -> Requirement | PackageRefusal:
    if not name.isascii():
        return PackageRefusal(name=name, reason=foreign_letters(name, KEY))
    if not is_name(name) or not isinstance(wanted, str):
        return PackageRefusal(name=name, reason=f"{path}: {_shown(name)} is no name of a package.")
    if wanted.startswith("npm:"):
        other = wanted.removeprefix("npm:")
        return PackageRefusal(name=name, reason=f"{name} is another package under a borrowed name: {_shown(other)}.")
    if wanted.startswith("workspace:") or _RANGE.fullmatch(wanted):
        text = wanted.strip() or "*"
        return Requirement(language=KEY, name=name.lower(), text=text, path=path, kind=kind)
    return PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the registry.")


def _leaves(table: Mapping[str, object], name: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield (name if key == "." else key), value
        else:
            yield from _leaves(as_table(value), key)


def _shown(text: str) -> str:
    plain = ascii(text)[1:-1]
    return plain if len(plain) <= 80 else plain[:77] + "..."
