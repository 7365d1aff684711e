"""Inspect a wheel without unpacking it: find files that would run automatically or replace those of another package."""

from __future__ import annotations

import configparser
import hashlib
import io
import re
import stat
import sys
import zipfile
from collections.abc import Collection, Iterator
from email.parser import BytesHeaderParser
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from redstart.toolkit.installs.bounds import outside, taken_programs, too_large
from redstart.toolkit.installs.names import hyphenated, popular
from redstart.toolkit.languages.python.packages import KEY

LARGEST_TEXT = 4 << 20
STARTUP = ("sitecustomize", "usercustomize")
MODULE_OWNERS = {
    "_pytest": ("pytest",),
    "pytest": ("pytest",),
    "py": ("pytest", "py"),
    "conftest": (),
    "pip": ("pip",),
    "setuptools": ("setuptools",),
    "pkg_resources": ("setuptools",),
    "redstart": (),
    **dict.fromkeys(STARTUP, ()),
}
"""Modules that only their owners may provide; no package may provide a module without an owner."""
_CODE = (".py", ".pyc", ".so", ".pyd")
_WITHIN = ("purelib", "platlib")


class Wheel(NamedTuple):
    name: str
    version: str
    sha256: str
    code: dict[str, str]
    """The hash of each code file by its installed path, to detect two wheels that install different files there."""
    faults: tuple[str, ...]
    """Why the wheel must not be installed; each reason completes a sentence that starts with its name."""


def look_into(path: Path, *, trusted: Collection[str] = (), own: Collection[str] = ()) -> Wheel:
    """Identify a wheel and find its faults. A file that is not a wheel has that as its fault.

    Packages whose names are `trusted` may provide a pytest plugin, as popular ones may; all other rules apply to all.
    """
    name, version = _named(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with zipfile.ZipFile(path) as archive:
            placed = list(_placed(archive))
            faults = tuple(dict.fromkeys(_faults(archive, path, name, placed, trusted, own)))
            code = {} if faults else _code(archive, placed)
    except (zipfile.BadZipFile, ValueError, configparser.Error, OSError, NotImplementedError, RuntimeError) as error:
        return Wheel(name, version, digest, {}, (f"cannot be read ({str(error)[:100]})",))
    return Wheel(name, version, digest, code, faults)


class _Place(NamedTuple):
    info: zipfile.ZipInfo
    scheme: str
    """`lib` for importable files, else the part of the environment: `scripts`, `data`, `headers`."""
    path: str


def _placed(archive: zipfile.ZipFile) -> Iterator[_Place]:
    for info in archive.infolist():
        top, _, rest = info.filename.partition("/")
        scheme, _, inner = rest.partition("/")
        if top.endswith(".data"):
            yield _Place(info, "lib" if scheme in _WITHIN else scheme, inner)
        else:
            yield _Place(info, "lib", info.filename)


def _faults(
    archive: zipfile.ZipFile,
    path: Path,
    name: str,
    placed: list[_Place],
    trusted: Collection[str],
    own: Collection[str],
) -> Iterator[str]:
    infos = archive.infolist()
    if too_large(path.stat().st_size, [info.file_size for info in infos]):
        yield "unfolds to far more than its size"
        return
    if any(outside(info.filename) for info in infos):
        yield "has files that would be written outside of its folder"
    if any(_is_link(info) for info in infos):
        yield "holds a link or a device instead of a file"
    yield from _identity(archive, name)
    yield from _startup(placed)
    yield from _modules(name, placed, own)
    yield from _programs(archive, name, placed, name in trusted or name in popular(KEY))


def _is_link(info: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind not in (0, stat.S_IFREG, stat.S_IFDIR)


def _identity(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    """Check that the metadata names the requested package; a second set of metadata could name another."""
    metadata = [item for item in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", item)]
    if len(metadata) != 1:
        yield "does not say what it is"
        return
    said = BytesHeaderParser().parsebytes(_text(archive, metadata[0]))
    if hyphenated(str(said.get("Name", ""))) != name:
        yield "says that it is another package"


def _startup(placed: list[_Place]) -> Iterator[str]:
    for place in placed:
        if place.path.lower().endswith(".pth") and (place.scheme != "lib" or "/" not in place.path):
            yield f"brings {PurePosixPath(place.path).name}, which Python runs at every start"
        if place.scheme == "data" and place.path.split("/")[0] not in ("share", "etc", "include", ""):
            yield f"would write {ascii(place.path)[1:-1][:80]} into the environment itself"


def _modules(name: str, placed: list[_Place], own: Collection[str]) -> Iterator[str]:
    modules = {top for place in placed if place.scheme == "lib" and (top := _top(place.path))}
    ours = {item.replace("-", "_").lower() for item in own}
    for module in sorted(modules):
        if module in STARTUP:
            yield f"brings {module}, which Python runs at every start"
        elif module == "conftest":
            yield "brings conftest.py, which pytest runs unasked"
        elif module in MODULE_OWNERS and name not in MODULE_OWNERS[module]:
            yield f"brings {module}, which is not its own"
        elif module in sys.stdlib_module_names and module not in ("this", "antigravity"):
            yield f"brings {module}, a module of Python itself"
        elif module.lower() in ours:
            yield f"brings {module}, a module of this project"


def _top(path: str) -> str:
    """Find the top-level module that a library file makes importable; empty for data and metadata."""
    top, inner, _ = path.partition("/")
    if not inner:
        return top.split(".")[0] if top.endswith(_CODE) else ""
    return "" if "." in top or not path.endswith(_CODE) else top


def _programs(archive: zipfile.ZipFile, name: str, placed: list[_Place], known: bool) -> Iterator[str]:
    programs = [PurePosixPath(place.path).name for place in placed if place.scheme == "scripts"]
    for file in archive.namelist():
        if not re.fullmatch(r"[^/]+\.dist-info/entry_points\.txt", file):
            continue
        points = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        points.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  (names keep their case)
        points.read_file(io.StringIO(_text(archive, file).decode("utf-8", "replace")))
        for section in points.sections():
            if section in ("console_scripts", "gui_scripts"):
                programs += points.options(section)
            elif section == "pytest11" and not known:
                yield "brings a plugin that pytest runs unasked"
    for program in taken_programs(name, (re.sub(r"[\d.]+$", "", item) or item for item in programs)):
        yield f"brings a program called {program}"


def _code(archive: zipfile.ZipFile, placed: list[_Place]) -> dict[str, str]:
    return {
        place.path: hashlib.sha256(archive.read(place.info)).hexdigest()
        for place in placed
        if place.scheme == "lib" and place.path.endswith(_CODE)
    }


def _text(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > LARGEST_TEXT:
        raise ValueError(f"{name} is too large")
    return archive.read(name)


def _named(path: Path) -> tuple[str, str]:
    parts = path.name.removesuffix(".whl").split("-")
    return hyphenated(parts[0]), parts[1] if len(parts) > 1 else ""
