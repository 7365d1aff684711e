"""Parse requirements of Python projects, `pyproject.toml` and `requirements*.txt`, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from redstart.ports.install.port import PackageRefusal, Requirement
from redstart.toolkit.installs.names import foreign_letters, hyphenated
from redstart.toolkit.installs.tables import as_table
from redstart.toolkit.languages.python.packages import KEY

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"(?:===|==|!=|~=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_TERM = r"\(*\s*(?:[\w.]+|'[^']*'|\"[^\"]*\")\s*\)*"
_CONDITION = rf"{_TERM}\s*(?:[<>=!~]=?=?|\bnot\s+in\b|\bin\b)\s*{_TERM}"
_LINE = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[[\w\s,.-]*\])?\s*(?:\(?\s*{_VERSION}(?:\s*,\s*{_VERSION})*\s*\)?)?\s*"
    rf"(?:;\s*{_CONDITION}(?:\s*\b(?:and|or)\b\s*{_CONDITION})*\s*)?"
)
_BEGINS = re.compile(rf"\s*({_NAME})")
_WRITTEN = re.compile(r"[\w.-]+")
_HASH = re.compile(r"\s--hash[= ]\S+")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_ADDRESS = re.compile(r"(?:@\s|://|^(?:git|hg|svn|bzr)\+|^[./~])|@\s*\w+[+:]")
_ELSEWHERE = ("-i", "--index-url", "--extra-index-url", "-f", "--find-links", "--trusted-host", "--no-index")
_HARMLESS = ("--no-binary", "--only-binary", "--prefer-binary", "--require-hashes", "--pre", "-c", "--constraint")
LONGEST = 1000
"""The maximum number of characters in one requirement."""
Found = Iterator[Requirement | PackageRefusal]


def of_pyproject(path: str, table: Mapping[str, object]) -> Found:
    """Read dependencies, every extra and group, Poetry's dependencies, and build requirements."""
    project = as_table(table.get("project"))
    for line in _lines(project.get("dependencies")):
        yield _requirement(path, line)
    groups = [
        *as_table(project.get("optional-dependencies")).values(),
        *as_table(table.get("dependency-groups")).values(),
    ]
    for line in (line for group in groups for line in _lines(group)):
        yield _requirement(path, line)
    for line in _lines(as_table(table.get("build-system")).get("requires")):
        yield _requirement(path, line, installed=False)
    tool = as_table(table.get("tool"))
    yield from _poetry(path, as_table(tool.get("poetry")))
    yield from _uv(path, as_table(tool.get("uv")))


def of_requirements(path: str, text: str) -> Found:
    for raw in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        line = _HASH.sub("", _COMMENT.sub("", raw)).strip()
        option = re.split(r"[\s=]", line, maxsplit=1)[0]
        if not line or option in _HARMLESS or line in ("-e .", "--editable .", "."):
            continue
        if option in ("-r", "--requirement"):
            yield from _included(path, line)
        elif any(option == item or (item[1] != "-" and option.startswith(item)) for item in _ELSEWHERE):
            yield PackageRefusal(name="", reason=f"{path} names another place to get packages from ({option}).")
        elif option in ("-e", "--editable"):
            yield PackageRefusal(name="", reason=f"{path} installs a folder or an address ({_short(line)}).")
        else:
            yield _requirement(path, line)


def _included(path: str, line: str) -> Found:
    """Refuse an included file that is not read separately; a file named `requirements*` is."""
    target = line.partition(" ")[2].strip() or line.partition("=")[2].strip()
    name = target.rsplit("/", 1)[-1]
    if ".." in target.split("/") or target.startswith("/") or "://" in target or not name.startswith("requirements"):
        yield PackageRefusal(name="", reason=f"{path} includes {_short(target)}, which is not read.")


def _requirement(path: str, line: str, *, installed: bool = True) -> Requirement | PackageRefusal:
    text = " ".join(line.split())
    if len(text) > LONGEST:
        return PackageRefusal(name="", reason=f"{path} has a line that is too long to be a requirement.")
    begins = _BEGINS.match(text)
    name = hyphenated(begins[1]) if begins else ""
    if _ADDRESS.search(text):
        return PackageRefusal(
            name=name, reason=f"{name or path} comes from an address or a folder, not from the index."
        )
    found = _LINE.fullmatch(text)
    written = _WRITTEN.match(text)
    if written is not None and not written[0].isascii():
        return PackageRefusal(name=written[0], reason=foreign_letters(written[0], KEY))
    if found is None:
        shown = ascii(text)[1:-1]
        return PackageRefusal(name=name, reason=f"{path}: “{_short(shown)}” is no requirement that can be read.")
    name = hyphenated(found["name"])
    return Requirement(language=KEY, name=name, text=text, path=path, installed=installed)


def _poetry(path: str, table: Mapping[str, object]) -> Found:
    groups = [table.get("dependencies"), table.get("dev-dependencies")]
    groups += [as_table(group).get("dependencies") for group in as_table(table.get("group")).values()]
    for name, wanted in ((name, wanted) for group in groups for name, wanted in as_table(group).items()):
        if name.lower() == "python":
            continue
        version = as_table(wanted).get("version") if not isinstance(wanted, str) else wanted
        if not isinstance(version, str):
            yield PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the index.")
        else:
            yield _requirement(path, name + _pep_508(version))


def _pep_508(version: str) -> str:
    """Convert Poetry's caret and tilde to operators that every installer knows; only the lower bound matters."""
    plain = version.strip()
    if plain in ("", "*"):
        return ""
    return (
        f">={plain[1:]}"
        if plain[0] in "^~" and not plain.startswith("~=")
        else (plain if plain[0] in "<>=!~" else f"=={plain}")
    )


def _uv(path: str, table: Mapping[str, object]) -> Found:
    for name, source in as_table(table.get("sources")).items():
        if as_table(source).get("workspace") is not True:
            yield PackageRefusal(name=name, reason=f"{name} comes from an address or a folder, not from the index.")
    for key in ("index", "index-url", "extra-index-url", "find-links"):
        if key in table:
            yield PackageRefusal(name="", reason=f"{path} names another place to get packages from (tool.uv.{key}).")


def _lines(value: object) -> list[str]:
    return [item for item in cast("list[object]", value) if isinstance(item, str)] if isinstance(value, list) else []


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."
