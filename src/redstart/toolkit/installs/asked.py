"""What a project asks for, read from its files as data. Nothing of the project is run."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple, TypeGuard, cast

from redstart.ports.install.port import Language, Refusal, Requirement
from redstart.toolkit.installs import asked_node, asked_python
from redstart.toolkit.installs.names import normal

LARGEST = 2_000_000
"""Bytes of a file beyond which it is not read."""
_PASSED_OVER = frozenset({"node_modules", ".venv", "venv", ".git", ".tox", ".nox"})

Table = Mapping[str, object]


class Asked(NamedTuple):
    requirements: tuple[Requirement, ...]
    refused: tuple[Refusal, ...]
    """What was asked for in a way that no index answers: an address, a folder, another index, an unreadable line."""
    own: tuple[str, ...]
    """The project's own names, its modules among them."""


def is_manifest(path: str) -> bool:
    """Whether a file of this path says what a project depends on."""
    place = PurePosixPath(path)
    if not _PASSED_OVER.isdisjoint(place.parts):
        return False
    if place.name in ("pyproject.toml", "package.json", "package-lock.json"):
        return True
    named = place.stem.startswith("requirements") or place.parent.name == "requirements"
    return named and place.suffix in (".txt", ".in")


def read(files: Mapping[str, bytes]) -> Asked:
    """What the files ask for; those that are no manifest are only looked at for the names of the project's modules.

    A file that cannot be read is a refusal with its path: what it asks for is not known.
    """
    requirements: list[Requirement] = []
    refused: list[Refusal] = []
    own = set(_modules(files))
    for path in sorted(path for path in files if is_manifest(path)):
        try:
            found = list(_of_file(path, files[path], own))
        except (ValueError, RecursionError) as error:
            refused.append(Refusal(name="", reason=f"{path} cannot be read: {str(error)[:200]}."))
            continue
        requirements += [one for one in found if isinstance(one, Requirement)]
        refused += [one for one in found if isinstance(one, Refusal)]
    ours = {normal(name, language) for name in own for language in Language}
    kept = [one for one in dict.fromkeys(requirements) if not _is_itself(one, ours)]
    return Asked(tuple(kept), tuple(dict.fromkeys(refused)), tuple(sorted(own)))


def _is_itself(one: Requirement, own: set[str]) -> bool:
    """`name[extra]` in the project's own extras, and a workspace's packages in one another."""
    return one.name in own and (one.text.startswith(f"{one.name}[") or one.text.startswith("workspace:"))


def _of_file(path: str, data: bytes, own: set[str]) -> Iterator[Requirement | Refusal]:
    if len(data) > LARGEST:
        raise ValueError("it is too large")
    text = data.decode("utf-8")
    name = PurePosixPath(path).name
    if name == "pyproject.toml":
        table = tomllib.loads(text)
        own |= set(_own_names(table.get("project")))
        yield from asked_python.of_pyproject(path, table)
    elif name == "package.json":
        table = _object(json.loads(text))
        own |= set(_own_names(table))
        yield from asked_node.of_package(path, table)
    elif name == "package-lock.json":
        yield from asked_node.of_lock(path, _object(json.loads(text)))
    else:
        yield from asked_python.of_requirements(path, text)


def _own_names(project: object) -> Iterator[str]:
    name = project.get("name") if is_table(project) else None
    if isinstance(name, str) and name:
        yield name


def _modules(files: Mapping[str, bytes]) -> Iterator[str]:
    """The importable names at the root of a Python project, or in its `src`."""
    for path in files:
        parts = PurePosixPath(path).parts
        inner = parts[1:] if parts[:1] == ("src",) else parts
        if len(inner) > 1 and inner[-1] == "__init__.py":
            yield inner[0]
        elif len(inner) == 1 and inner[0].endswith(".py") and inner[0] not in ("setup.py", "conftest.py"):
            yield inner[0].removesuffix(".py")


def is_table(value: object) -> TypeGuard[Table]:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[object, object]", value))


def _object(value: object) -> Table:
    if not is_table(value):
        raise ValueError("it is no JSON object")
    return value
