"""The versions that Python projects declare and lock, and those that are installed."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath
from typing import cast

from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult, PackageRefusal, Requirement
from redstart.toolkit.installs.manifest_tables import as_table
from redstart.toolkit.installs.names import hyphenate
from redstart.toolkit.installs.sides import DeclaredGroup, SideNeeds
from redstart.toolkit.languages.python.packages import KEY

_REQUIREMENTS = re.compile(
    r"(?:^|/)(?:[\w.-]*requirements[\w.-]*\.(?:txt|in)|requirements/[^/]+\.(?:txt|in)|constraints[\w.-]*\.txt)$", re.I
)
_TOML_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_UNREAD = re.compile(r"^(?:pipfile|pixi\.lock|environment\.ya?ml)$", re.IGNORECASE)
_PYTHON_FOLDER = re.compile(r"python(\d+\.\d+)$")
_ADDRESS = re.compile(r"\w+://[^\s\"']+")
_INDEX_SOURCES = ("registry", "legacy")


class PythonVersions:
    def is_declaration(self, path: str) -> bool:
        name = PurePosixPath(path).name
        is_known = name in (*_TOML_LOCKS, "pyproject.toml", "Pipfile.lock") or bool(_REQUIREMENTS.search(path))
        return is_known or bool(_UNREAD.search(name))

    def read_groups(self, path: str, text: str, environment: Environment) -> Sequence[DeclaredGroup]:
        name = PurePosixPath(path).name
        if _UNREAD.search(name):
            raise ValueError("its form is not supported")
        if name in _TOML_LOCKS:
            return [_read_toml_lock(tomllib.loads(text))]
        if name == "Pipfile.lock":
            return [_read_pipfile_lock(as_table(json.loads(text)))]
        from redstart.toolkit.languages.python.requirements import parse_pyproject, parse_requirements

        python = _find_version(environment)
        if name != "pyproject.toml":
            group = _build_group("", parse_requirements(path, text), python, text)
            return [group._replace(is_lock=name.lower().startswith("constraints"))]
        tables = _split_pyproject(tomllib.loads(text))
        return [
            _build_group(group, parse_pyproject(path, table), python, json.dumps(table, default=str))
            for group, table in tables
        ]

    def list_installed(self, environment: Environment) -> Mapping[str, str]:
        folders = [str(folder) for folder in _list_site_folders(environment)]
        found = ((item.metadata["Name"], item.version) for item in distributions(path=folders)) if folders else ()
        return {hyphenate(name): version for name, version in reversed([*found]) if name and version}

    def is_satisfied(self, requirement: str, version: str) -> bool:
        from packaging.requirements import Requirement as ParsedRequirement

        return ParsedRequirement(requirement).specifier.contains(version, prereleases=True)

    def build_request(self, needs: SideNeeds, installed: Mapping[str, str], environment: Environment) -> InstallRequest:
        kept = {name: f"{name}=={version}" for name, version in installed.items()}
        lock = {name: text for name, text in {**needs.pins, **kept}.items() if name not in needs.packages}
        return InstallRequest(
            language=KEY,
            requirements=tuple(
                Requirement(language=KEY, name=name, text=text, path="") for name, text in needs.packages.items()
            ),
            trusted=tuple(sorted(needs.trusted)),
            python=environment.python,
            lock="".join(f"{text}\n" for _, text in sorted(lock.items())),
        )

    def with_versions(self, environment: Environment, prepared: InstallResult) -> Environment:
        packages = next(Path(prepared.folder).glob("lib/python*/site-packages"))
        path = ":".join(filter(None, (str(packages), environment.variables.get("PYTHONPATH", ""))))
        return environment.model_copy(
            update={
                "read_only": tuple(dict.fromkeys((*environment.read_only, prepared.folder))),
                "variables": {**environment.variables, "PYTHONPATH": path},
            }
        )


def _split_pyproject(table: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Split the table into one table for each group of dependencies, each with a name."""
    project, tool = as_table(table.get("project")), as_table(table.get("tool"))
    yield "dependencies", {"project": {"dependencies": project.get("dependencies")}}
    for name, lines in as_table(project.get("optional-dependencies")).items():
        yield f"extra {name}", {"dependency-groups": {name: lines}}
    for name, lines in as_table(table.get("dependency-groups")).items():
        yield f"group {name}", {"dependency-groups": {name: lines}}
    poetry = as_table(tool.get("poetry"))
    for key in ("dependencies", "dev-dependencies"):
        yield f"poetry {key}", {"tool": {"poetry": {key: poetry.get(key)}}}
    for name, group in as_table(poetry.get("group")).items():
        yield f"poetry group {name}", {"tool": {"poetry": {"group": {name: group}}}}


def _build_group(name: str, items: Iterable[Requirement | PackageRefusal], python: str, text: str) -> DeclaredGroup:
    digest = hashlib.sha256(" ".join(_ADDRESS.findall(text)).encode()).hexdigest()
    packages: dict[str, list[str]] = {}
    foreign: set[str] = set()
    for item in items:
        if isinstance(item, PackageRefusal):
            foreign.add(f"{item.name or 'a line'} {digest}")
        elif _applies(item.text, python):
            packages.setdefault(item.name, []).append(item.text)
    return DeclaredGroup(name, packages, foreign=frozenset(foreign))


def _applies(requirement: str, python: str) -> bool:
    """Return whether the marker of the requirement applies to this version of Python."""
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as ParsedRequirement

    try:
        marker = ParsedRequirement(requirement).marker
    except InvalidRequirement:
        return False
    return marker is None or marker.evaluate({"python_version": python, "python_full_version": f"{python}.0"})


def _read_toml_lock(table: Mapping[str, object]) -> DeclaredGroup:
    """Read the lock of uv, Poetry or PDM. The project itself and its workspace are no packages."""
    entries = table.get("package")
    packages: dict[str, list[str]] = {}
    foreign: set[str] = set()
    for entry in map(as_table, cast("list[object]", entries) if isinstance(entries, list) else ()):
        name, version, source = entry.get("name"), entry.get("version"), as_table(entry.get("source"))
        is_address = any(key in entry for key in ("git", "url", "path"))
        kind = source.get("type", "legacy") if "type" in source else next(iter(source), "registry")
        if not isinstance(name, str) or not isinstance(version, str):
            continue
        if kind in ("editable", "virtual", "directory", "workspace"):
            continue
        if is_address or kind not in _INDEX_SOURCES:
            foreign.add(f"{hyphenate(name)} {version}")
            continue
        packages.setdefault(hyphenate(name), []).append(f"{hyphenate(name)}=={version}")
    return DeclaredGroup("", packages, is_lock=True, foreign=frozenset(foreign))


def _read_pipfile_lock(table: Mapping[str, object]) -> DeclaredGroup:
    packages: dict[str, list[str]] = {}
    for section in ("default", "develop"):
        for name, entry in as_table(table.get(section)).items():
            version = as_table(entry).get("version")
            if isinstance(version, str):
                packages[hyphenate(name)] = [f"{hyphenate(name)}{version}"]
    return DeclaredGroup("", packages, is_lock=True)


def _list_site_folders(environment: Environment) -> Iterator[Path]:
    prefix = Path(environment.python).parent.parent
    yield from (Path(part) for part in environment.variables.get("PYTHONPATH", "").split(":") if part)
    for pattern in ("lib/python3*/site-packages", "local/lib/python3*/dist-packages", "lib/python3/dist-packages"):
        yield from sorted(prefix.glob(pattern))


def _find_version(environment: Environment) -> str:
    """Find the version of the interpreter by its folders, without starting it."""
    program = Path(environment.python)
    folders = sorted((program.parent.parent / "lib").glob("python3.*"))
    names = [program.name, program.resolve().name, *(folder.name for folder in folders)]
    return next((match[1] for name in names if (match := _PYTHON_FOLDER.search(name))), "3")
