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

from redstart.toolkit.installs.archive_checks import find_reserved_programs, is_outside, is_too_large
from redstart.toolkit.installs.names import get_popular_names, hyphenate
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
_LIBRARY_SCHEMES = ("purelib", "platlib")


class Wheel(NamedTuple):
    name: str
    version: str
    sha256: str
    code: dict[str, str]
    """The hash of each code file by its installed path, to detect two wheels that install different files there."""
    faults: tuple[str, ...]
    """Why the wheel must not be installed; each reason completes a sentence that starts with its name."""


def inspect_wheel(path: Path, *, trusted_names: Collection[str] = (), own_packages: Collection[str] = ()) -> Wheel:
    """Identify a wheel and find its faults. A file that is not a wheel has that as its fault.

    Packages whose names are `trusted_names` may provide a pytest plugin, as popular ones may; all other rules apply to
    all.
    """
    name, version = _parse_file_name(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    try:
        with zipfile.ZipFile(path) as archive:
            placed_files = list(_list_placed_files(archive))
            faults = tuple(dict.fromkeys(_find_faults(archive, path, name, placed_files, trusted_names, own_packages)))
            code = {} if faults else _hash_code(archive, placed_files)
    except (zipfile.BadZipFile, ValueError, configparser.Error, OSError, NotImplementedError, RuntimeError) as error:
        return Wheel(name, version, digest, {}, (f"cannot be read ({str(error)[:100]})",))
    return Wheel(name, version, digest, code, faults)


class _Place(NamedTuple):
    info: zipfile.ZipInfo
    scheme: str
    """`lib` for importable files, else the part of the environment: `scripts`, `data`, `headers`."""
    path: str


def _list_placed_files(archive: zipfile.ZipFile) -> Iterator[_Place]:
    for info in archive.infolist():
        top, _, rest = info.filename.partition("/")
        scheme, _, inner_path = rest.partition("/")
        if top.endswith(".data"):
            yield _Place(info, "lib" if scheme in _LIBRARY_SCHEMES else scheme, inner_path)
        else:
            yield _Place(info, "lib", info.filename)


def _find_faults(
    archive: zipfile.ZipFile,
    path: Path,
    name: str,
    placed_files: list[_Place],
    trusted_names: Collection[str],
    own_packages: Collection[str],
) -> Iterator[str]:
    infos = archive.infolist()
    if is_too_large(path.stat().st_size, [info.file_size for info in infos]):
        yield "unfolds to far more than its size"
        return
    if any(is_outside(info.filename) for info in infos):
        yield "has files that would be written outside of its folder"
    if any(_is_link(info) for info in infos):
        yield "holds a link or a device instead of a file"
    yield from _check_identity(archive, name)
    yield from _check_startup_files(placed_files)
    yield from _check_modules(name, placed_files, own_packages)
    yield from _check_programs(archive, name, placed_files, name in trusted_names or name in get_popular_names(KEY))


def _is_link(info: zipfile.ZipInfo) -> bool:
    kind = stat.S_IFMT(info.external_attr >> 16)
    return kind not in (0, stat.S_IFREG, stat.S_IFDIR)


def _check_identity(archive: zipfile.ZipFile, name: str) -> Iterator[str]:
    """Check that the metadata names the requested package; a second set of metadata could name another."""
    metadata = [item for item in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", item)]
    if len(metadata) != 1:
        yield "does not say what it is"
        return
    headers = BytesHeaderParser().parsebytes(_read_text(archive, metadata[0]))
    if hyphenate(str(headers.get("Name", ""))) != name:
        yield "says that it is another package"


def _check_startup_files(placed_files: list[_Place]) -> Iterator[str]:
    for place in placed_files:
        if place.path.lower().endswith(".pth") and (place.scheme != "lib" or "/" not in place.path):
            yield f"brings {PurePosixPath(place.path).name}, which Python runs at every start"
        if place.scheme == "data" and place.path.split("/")[0] not in ("share", "etc", "include", ""):
            yield f"would write {ascii(place.path)[1:-1][:80]} into the environment itself"


def _check_modules(name: str, placed_files: list[_Place], own_packages: Collection[str]) -> Iterator[str]:
    modules = {top for place in placed_files if place.scheme == "lib" and (top := _find_top_module(place.path))}
    own_names = {item.replace("-", "_").lower() for item in own_packages}
    for module in sorted(modules):
        if module in STARTUP:
            yield f"brings {module}, which Python runs at every start"
        elif module == "conftest":
            yield "brings conftest.py, which pytest runs unasked"
        elif module in MODULE_OWNERS and name not in MODULE_OWNERS[module]:
            yield f"brings {module}, which is not its own"
        elif module in sys.stdlib_module_names and module not in ("this", "antigravity"):
            yield f"brings {module}, a module of Python itself"
        elif module.lower() in own_names:
            yield f"brings {module}, a module of this project"


def _find_top_module(path: str) -> str:
    """Find the top-level module that a library file makes importable; empty for data and metadata."""
    top, inner_path, _ = path.partition("/")
    if not inner_path:
        return top.split(".")[0] if top.endswith(_CODE) else ""
    return "" if "." in top or not path.endswith(_CODE) else top


def _check_programs(archive: zipfile.ZipFile, name: str, placed_files: list[_Place], is_known: bool) -> Iterator[str]:
    programs = [PurePosixPath(place.path).name for place in placed_files if place.scheme == "scripts"]
    for file in archive.namelist():
        if not re.fullmatch(r"[^/]+\.dist-info/entry_points\.txt", file):
            continue
        points = configparser.ConfigParser(delimiters=("=",), interpolation=None, strict=False)
        points.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]  (names keep their case)
        points.read_file(io.StringIO(_read_text(archive, file).decode("utf-8", "replace")))
        for section in points.sections():
            if section in ("console_scripts", "gui_scripts"):
                programs += points.options(section)
            elif section == "pytest11" and not is_known:
                yield "brings a plugin that pytest runs unasked"
    for program in find_reserved_programs(name, (re.sub(r"[\d.]+$", "", item) or item for item in programs)):
        yield f"brings a program called {program}"


def _hash_code(archive: zipfile.ZipFile, placed_files: list[_Place]) -> dict[str, str]:
    return {
        place.path: hashlib.sha256(archive.read(place.info)).hexdigest()
        for place in placed_files
        if place.scheme == "lib" and place.path.endswith(_CODE)
    }


def _read_text(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > LARGEST_TEXT:
        raise ValueError(f"{name} is too large")
    return archive.read(name)


def _parse_file_name(path: Path) -> tuple[str, str]:
    parts = path.name.removesuffix(".whl").split("-")
    return hyphenate(parts[0]), parts[1] if len(parts) > 1 else ""
