"""Inspect an npm tarball without unpacking it: find scripts that would run unasked, and impersonation of other
packages.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from redstart.toolkit.installs.archive_checks import MOST_FILES, find_reserved_programs, is_outside, is_too_large
from redstart.toolkit.installs.manifest_tables import as_table
from redstart.toolkit.installs.names import get_popular_names
from redstart.toolkit.languages.node.packages import KEY

LARGEST_TEXT = 4 << 20
AT_INSTALL = ("preinstall", "install", "postinstall")


def find_tarball_faults(path: Path, name: str, version: str, *, trusted_names: Collection[str] = ()) -> tuple[str, ...]:
    """List why the package must not be installed, each as the end of a sentence that begins with its name.

    Packages that are `trusted_names` by name, or popular, may have an install script (it does not run) and may bundle
    copies of others; the other checks apply to all. A file that is not a tarball has that as its fault.
    """
    is_known = name in trusted_names or name in get_popular_names(KEY)
    try:
        with tarfile.open(path, "r:*") as archive:
            return tuple(dict.fromkeys(_find_faults(archive, path, name, version, is_known)))
    except (tarfile.TarError, OSError, ValueError, EOFError, RecursionError) as error:
        return (f"cannot be read ({str(error)[:100]})",)


def _find_faults(archive: tarfile.TarFile, path: Path, name: str, version: str, is_known: bool) -> Iterator[str]:
    members: list[tarfile.TarInfo] = []
    packed_size = path.stat().st_size
    for member in archive:
        members.append(member)
        if len(members) > MOST_FILES or is_too_large(packed_size, [item.size for item in members[-1:]]):
            yield "unfolds to far more than its size"
            return
    if is_too_large(packed_size, [item.size for item in members]):
        yield "unfolds to far more than its size"
        return
    if any(is_outside(item.name) for item in members):
        yield "has files that would be written outside of its folder"
    if any(not (item.isreg() or item.isdir()) for item in members):
        yield "holds a link or a device instead of a file"
    inner_paths = {item.name.partition("/")[2] for item in members}
    if not is_known and any("node_modules/" in item for item in inner_paths):
        yield "brings copies of other packages inside"
    yield from _check_manifest(archive, members, name, version, is_known)
    if not is_known and "binding.gyp" in inner_paths:
        yield "is built when it is installed"


def _check_manifest(
    archive: tarfile.TarFile, members: list[tarfile.TarInfo], name: str, version: str, is_known: bool
) -> Iterator[str]:
    manifests = [member for member in members if member.isreg() and member.name.partition("/")[2] == "package.json"]
    if len(manifests) != 1 or manifests[0].size > LARGEST_TEXT:
        yield "does not say what it is"
        return
    reader = archive.extractfile(manifests[0])
    table = as_table(json.loads(reader.read().decode("utf-8-sig")) if reader else None)
    if table.get("name") != name or str(table.get("version", "")).lstrip("v=") != version:
        yield "says that it is another package"
    scripts = as_table(table.get("scripts"))
    if not is_known and any(script in scripts for script in AT_INSTALL):
        yield "wants to run a program of its own when it is installed"
    if taken_names := find_reserved_programs(name, _list_programs(table, name)):
        yield f"brings a program called {taken_names[0]}"
    elif any(is_outside(program) or "/" in program for program in _list_programs(table, name)):
        yield "brings a program whose name leads elsewhere"


def _list_programs(table: Mapping[str, object], name: str) -> list[str]:
    programs = table.get("bin")
    return [name.rpartition("/")[2]] if isinstance(programs, str) else list(as_table(programs))
