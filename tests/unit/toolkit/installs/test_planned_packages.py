"""Packages that a plan requests, as the model wrote them, and the manifest that names them."""

from __future__ import annotations

import json
import tomllib

import pytest

from redstart.app.project_files import build_project_files
from redstart.core.packages import PackageRequest
from redstart.toolkit.installs.manager import PackageManager
from redstart.toolkit.installs.planned_packages import MOST_PACKAGES, add_dependencies, normalize_requests
from redstart.toolkit.installs.requested_packages import read
from redstart.toolkit.languages.new_program import NewProject
from redstart.toolkit.languages.node.packages import NodePackages
from redstart.toolkit.languages.python.packages import PythonPackages

PYTHON, NODE = PythonPackages(), NodePackages()


def list_names(manager: PackageManager, *raw_names: str) -> list[str]:
    requests = normalize_requests([PackageRequest(name=name) for name in raw_names], manager)
    return [request.name for request in requests]


def build_manifest(language: str = "python") -> dict[str, bytes]:
    return {
        path: text or b"" for path, text in build_project_files(NewProject("shop", "a shop", language=language)).items()
    }


def test_names_exclude_versions_and_standard_modules():
    assert list_names(PYTHON, "Flask>=3", "flask", "SQLAlchemy[asyncio] ~= 2.0", "sqlite3", "json") == [
        "flask",
        "sqlalchemy",
    ]
    assert list_names(NODE, "express@5", "@types/node@^20", "fs", "Express") == ["express", "@types/node"]
    assert len(list_names(PYTHON, *(f"acme-{number}" for number in range(30)))) == MOST_PACKAGES


@pytest.mark.parametrize("name", ["req\u0435sts", "flask @ https://example.invalid/f.whl", "git+https://x/y", "-r x"])
def test_invalid_name_is_refused_and_never_read_as_another_package(name):
    (kept_name,) = list_names(PYTHON, name)
    parsed_manifest = read({**build_manifest(), **add_dependencies(build_manifest(), [kept_name], PYTHON)})
    assert parsed_manifest.refused
    assert {requirement.name for requirement in parsed_manifest.requirements} == {"pytest", "setuptools"}


def test_dependencies_are_added_only_once():
    changes = add_dependencies(build_manifest(), ["flask", "httpx"], PYTHON)
    assert tomllib.loads(changes["pyproject.toml"].decode())["project"]["dependencies"] == ["flask", "httpx"]
    assert add_dependencies({**build_manifest(), **changes}, ["flask"], PYTHON) == {}
    more_changes = add_dependencies({**build_manifest(), **changes}, ["flask", "rich"], PYTHON)
    assert tomllib.loads(more_changes["pyproject.toml"].decode())["project"]["dependencies"] == [
        "flask",
        "httpx",
        "rich",
    ]
    package = json.loads(add_dependencies(build_manifest("node"), ["express"], NODE)["package.json"])
    assert (package["dependencies"], package["type"]) == ({"express": "*"}, "module")
    assert add_dependencies({}, ["flask"], PYTHON) == {}
