"""Parse requirements of Python projects, `pyproject.toml` and `requirements*.txt`, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.manifest_tables import as_table
from redstart.toolkit.installs.names import describe_foreign_letters, hyphenate
from redstart.toolkit.languages.python.packages import KEY

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===|==|!=|~=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_TERM = r"\(*\s*(?:[\w.]+|'[^']*'|\"[^\"]*\")\s*\)*"
_CONDITION = rf"{_TERM}\s*(?:[<>=!~]=?=?|\bnot\s+in\b|\bin\b)\s*{_TERM}"
_LINE = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[[\w\s,.-]*\])?\s*(?:\(?\s*{_VERSION}(?:\s*,\s*{_VERSION})*\s*\)?)?\s*"
    rf"(?:;\s*{_CONDITION}(?:\s*\b(?:and|or)\b\s*{_CONDITION})*\s*)?"
)
_LEADING_NAME = re.compile(rf"\s*({_NAME})")
_NAME_TEXT = re.compile(r"[\w.-]+")
_HASH = re.compile(r"\s--hash[= ]\S+")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_ADDRESS = re.compile(r"(?:@\s|://|^(?:git|hg|svn|bzr)\+|^[./~])|@\s*\w+[+:]")
_INDEX_OPTIONS = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--no-index")
_HARMLESS = ("--no-binary", "--only-binary", "--prefer-binary", "--require-hashes", "--pre", "-c", "--constraint")
LONGEST = 1000
"""The maximum number of characters in one requirement."""
RequestedItems = Iterator[Requirement | PackageRefusal]


def parse_pyproject(path: str, table: Mapping[str, object]) -> RequestedItems:
    """Read dependencies, every extra and group, Poetry's dependencies, and build requirements."""
    project = as_table(table.get("project"))
    for line in _list_strings(project.get("dependencies")):
        yield _parse_requirement(path, line)
    groups = [
        *as_table(project.get("optional-dependencies")).values(),
        *as_table(table.get("dependency-groups")).values(),
    ]
    for line in (line for group in groups for line in _list_strings(group)):
        yield _parse_requirement(path, line)
    for line in _list_strings(as_table(table.get("build-system")).get("requires")):
        yield _parse_requirement(path, line, is_installed=False)
    tool = as_table(table.get("tool"))
    yield from _parse_poetry(path, as_table(tool.get("poetry")))
    yield from _check_uv(path, as_table(tool.get("uv")))


def parse_requirements(path: str, text: str) -> RequestedItems:
    for raw in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        line = _HASH.sub("", _COMMENT.sub("", raw)).strip()
        option = re.split(r"[\s=]", line, maxsplit=1)[0]
        if not line or option in _HARMLESS or line in ("-e .", "--editable .", "."):
            continue
        if option in ("-r", "--requirement"):
            yield from _check_include(path, line)
        elif any(option == item or (item[1] != "-" and option.startswith(item)) for item in _INDEX_OPTIONS):
            yield PackageRefusal(name="", reason=f"{path} names another place to get packages from ({option}).")
        elif option in ("-e", "--editable"):
            yield PackageRefusal(name="", reason=f"{path} installs a folder or an address ({_shorten_text(line)}).")
        else:
            yield _parse_requirement(path, line)


def _check_include(path: str, line: str) -> RequestedItems:
    """Refuse an included file that is not read separately; a file named `requirements*` is."""
    target = line.partition(" ")[2].strip() or line.partition("=")[2].strip()
    name = target.rsplit("/", 1)[-1]
    if ".." in target.split("/") or target.startswith("/") or "://" in target or not name.startswith("requirements"):
        yield PackageRefusal(name="", reason=f"{path} includes {_shorten_text(target)}, which is not read.")


def _parse_requirement(path: str, line: str, *, is_installed: bool = True) -> Requirement | PackageRefusal:
    text = " ".join(line.split())
    if len(text) > LONGEST:
        return PackageRefusal(name="", reason=f"{path} has a line that is too long to be a requirement.")
    name_match = _LEADING_NAME.match(text)
    name = hyphenate(name_match[1]) if name_match else ""
    if _ADDRESS.search(text):
        return PackageRefusal(
            name=name, reason=f"{name or path} comes from an address or a folder, not from the index."
        )
    match = _LINE.fullmatch(text)
    written_name = _NAME_TEXT.match(text)
    if written_name is not None and not written_name[0].isascii():
        return PackageRefusal(name=written_name[0], reason=describe_foreign_letters(written_name[0], KEY))
    if match is None:
        escaped = ascii(text)[1:-1]
        return PackageRefusal(
            name=name, reason=f"{path}: “{_shorten_text(escaped)}” is no requirement that can be read."
        )
    name = hyphenate(match["name"])
    return Requirement(language=KEY, name=name, text=text, path=path, installed=is_installed)


def _parse_poetry(path: str, table: Mapping[str, object]) -> RequestedItems:
    groups = [table.get("dependencies"), table.get("dev-dependencies")]
    groups += [as_table(group).get("dependencies") for group in as_table(table.get("group")).values()]
    for name, constraint in ((name, constraint) for group in groups for name, constraint in as_table(group).items()):
        if name.lower() == "python":
            continue
        version = as_table(constraint).get("version") if not isinstance(constraint, str) else constraint
        if not isinstance(version, str):
            yield PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the index.")
        else:
            yield _parse_requirement(path, name + _convert_version(version))


def _convert_version(version: str) -> str:
    """Convert Poetry's caret and tilde to operators that every installer knows; only the lower bound matters."""
    stripped = version.strip()
    if stripped in ("", "*"):
        return ""
    return (
        f">={stripped[1:]}"
        if stripped[0] in "^~" and not stripped.startswith("~=")
        else (stripped if stripped[0] in "<>=!~" else f"=={stripped}")
    )


def _check_uv(path: str, table: Mapping[str, object]) -> RequestedItems:
    for name, source in as_table(table.get("sources")).items():
        if as_table(source).get("workspace") is not True:
            yield PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the index.")
    for key in ("index", "index-url", "extra-index-url", "find-links"):
        if key in table:
            yield PackageRefusal(name="", reason=f"{path} names another place to get packages from (tool.uv.{key}).")


def _list_strings(value: object) -> list[str]:
    return [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _shorten_text(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
