"""Dependencies of Node.js projects, read as data from `package.json` and lock files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.default_packages import is_name
from redstart.toolkit.installs.manifest_tables import as_table
from redstart.toolkit.installs.names import describe_foreign_letters
from redstart.toolkit.languages.node.packages import KEY

KINDS = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_RANGE = re.compile(r"[\w\s.^~<>=|*+-]*", re.ASCII)
_KEY = re.compile(r"(?:^|/)node_modules/((?:@[^/]+/)?[^/]+)$")

RequestedItems = Iterator[Requirement | PackageRefusal]


def parse_manifest(path: str, table: Mapping[str, object]) -> RequestedItems:
    for kind in KINDS:
        for name, version_range in as_table(table.get(kind)).items():
            yield _parse_requirement(path, kind, name, version_range)
    for key in ("overrides", "resolutions"):
        for name, version_range in _walk_overrides(as_table(table.get(key))):
            if not _RANGE.fullmatch(version_range.removeprefix("$")):
                yield PackageRefusal(
                    name=name, reason=f"{_escape_text(name)} is replaced by {_escape_text(version_range)} in {path}."
                )


def check_lock(path: str, table: Mapping[str, object]) -> RequestedItems:
    """Yield a refusal for each package that a lock fetches from elsewhere or under an alias; skip other entries."""
    for key, entry in as_table(table.get("packages")).items():
        match = _KEY.search(key)
        if match is None or as_table(entry).get("link") is True:
            continue
        name, address, real_name = match[1], as_table(entry).get("resolved"), as_table(entry).get("name")
        if isinstance(real_name, str) and real_name != name:
            yield PackageRefusal(
                name=name, reason=f"{path} puts {_escape_text(real_name)} in the place of {_escape_text(name)}."
            )
        elif isinstance(address, str) and not _is_registry_address(name, address):
            yield PackageRefusal(
                name=name, reason=f"{path} gets {_escape_text(name)} from elsewhere than its page at the registry."
            )


def _is_registry_address(name: str, address: str) -> bool:
    """Return whether an address has the form that every registry uses for this package's archives."""
    base = re.escape(name.rpartition("/")[2])
    return bool(re.fullmatch(rf"https?://[^?#]+/{re.escape(name)}/-/{base}-[^/?#]+\.tgz", address))


def _parse_requirement(path: str, kind: str, name: str, version_range: object) -> Requirement | PackageRefusal:
    if not name.isascii():
        return PackageRefusal(name=name, reason=describe_foreign_letters(name, KEY))
    if not is_name(name) or not isinstance(version_range, str):
        return PackageRefusal(name=name, reason=f"{path}: {_escape_text(name)} is no name of a package.")
    if version_range.startswith("npm:"):
        alias_target = version_range.removeprefix("npm:")
        return PackageRefusal(
            name=name, reason=f"{name} is another package under a borrowed name: {_escape_text(alias_target)}."
        )
    if version_range.startswith("workspace:") or _RANGE.fullmatch(version_range):
        text = version_range.strip() or "*"
        return Requirement(language=KEY, name=name.lower(), text=text, path=path, kind=kind)
    return PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the registry.")


def _walk_overrides(table: Mapping[str, object], name: str = "") -> Iterator[tuple[str, str]]:
    for key, value in table.items():
        if isinstance(value, str):
            yield (name if key == "." else key), value
        else:
            yield from _walk_overrides(as_table(value), key)


def _escape_text(text: str) -> str:
    escaped = ascii(text)[1:-1]
    return escaped if len(escaped) <= 80 else escaped[:77] + "..."
