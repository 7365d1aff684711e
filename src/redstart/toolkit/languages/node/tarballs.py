"""Inspects an npm tarball without unpacking it: scripts that would run unasked, and impersonation of other packages."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from redstart.toolkit.installs.bounds import MOST_FILES, outside, taken_programs, too_large
from redstart.toolkit.installs.names import popular
from redstart.toolkit.installs.tables import as_table
from redstart.toolkit.languages.node.packages import KEY

LARGEST_TEXT = 4 << 20
AT_INSTALL = ("preinstall", "install", "postinstall")


def faults_of(path: Path, name: str, version: str, *, trusted: Collection[str] = ()) -> tuple[str, ...]:
    """List why the package must not be installed, each as the end of a sentence that begins with its name.

    Packages that are `trusted` by name, or popular, may have an install script (it does not run) and may bundle copies
    of others; the other checks apply to all. A file that is not a tarball has that as its fault.
    """
    known = name in trusted or name in popular(KEY)
    try:
        with tarfile.open(path, "r:*") as archive:
            return tuple(dict.fromkeys(_faults(archive, path, name, version, known)))
    except (tarfile.TarError, OSError, ValueError, EOFError, RecursionError) as error:
        return (f"cannot be read ({str(error)[:100]})",)


def _faults(archive: tarfile.TarFile, path: Path, name: str, version: str, known: bool) -> Iterator[str]:
    members: list[tarfile.TarInfo] = []
    packed = path.stat().st_size
    for member in archive:
        members.append(member)
        if len(members) > MOST_FILES or too_large(packed, [item.size for item in members[-1:]]):
            yield "unfolds to far more than its size"
            return
    if too_large(packed, [item.size for item in members]):
        yield "unfolds to far more than its size"
        return
    if any(outside(item.name) for item in members):
        yield "has files that would be written outside of its folder"
    if any(not (item.isreg() or item.isdir()) for item in members):
        yield "holds a link or a device instead of a file"
    inner = {item.name.partition("/")[2] for item in members}
    if not known and any("node_modules/" in item for item in inner):
        yield "brings copies of other packages inside"
    yield from _manifest(archive, members, name, version, known)
    if not known and "binding.gyp" in inner:
        yield "is built when it is installed"


def _manifest(
    archive: tarfile.TarFile, members: list[tarfile.TarInfo], name: str, version: str, known: bool
) -> Iterator[str]:
    found = [member for member in members if member.isreg() and member.name.partition("/")[2] == "package.json"]
    if len(found) != 1 or found[0].size > LARGEST_TEXT:
        yield "does not say what it is"
        return
    reader = archive.extractfile(found[0])
    table = as_table(json.loads(reader.read().decode("utf-8-sig")) if reader else None)
    if table.get("name") != name or str(table.get("version", "")).lstrip("v=") != version:
        yield "says that it is another package"
    scripts = as_table(table.get("scripts"))
    if not known and any(script in scripts for script in AT_INSTALL):
        yield "wants to run a program of its own when it is installed"
    if taken := taken_programs(name, _programs(table, name)):
        yield f"brings a program called {taken[0]}"
    elif any(outside(program) or "/" in program for program in _programs(table, name)):
        yield "brings a program whose name leads elsewhere"


def _programs(table: Mapping[str, object], name: str) -> list[str]:
    programs = table.get("bin")
    return [name.rpartition("/")[2]] if isinstance(programs, str) else list(as_table(programs))
