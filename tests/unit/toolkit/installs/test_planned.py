"""Packages that a plan requests, as the model wrote them, and the manifest that names them."""

from __future__ import annotations

import json
import tomllib

import pytest

from redstart.app.skeleton import files_of
from redstart.core.packages import PackageRequest
from redstart.toolkit.installs.asked import read
from redstart.toolkit.installs.manager import PackageManager
from redstart.toolkit.installs.planned import MOST_PACKAGES, add_dependencies, readable_requests
from redstart.toolkit.languages.new_program import NewProject
from redstart.toolkit.languages.node.packages import NodePackages
from redstart.toolkit.languages.python.packages import PythonPackages

PYTHON, NODE = PythonPackages(), NodePackages()


def names(manager: PackageManager, *written: str) -> list[str]:
    requests = readable_requests([PackageRequest(name=name) for name in written], manager)
    return [request.name for request in requests]


def manifest(language: str = "python") -> dict[str, bytes]:
    return {path: text or b"" for path, text in files_of(NewProject("shop", "a shop", language=language)).items()}


def test_names_are_read_without_versions_and_without_the_languages_own_modules():
    assert names(PYTHON, "Flask>=3", "flask", "SQLAlchemy[asyncio] ~= 2.0", "sqlite3", "json") == [
        "flask",
        "sqlalchemy",
    ]
    assert names(NODE, "express@5", "@types/node@^20", "fs", "Express") == ["express", "@types/node"]
    assert len(names(PYTHON, *(f"acme-{number}" for number in range(30)))) == MOST_PACKAGES


@pytest.mark.parametrize("name", ["req\u0435sts", "flask @ https://example.invalid/f.whl", "git+https://x/y", "-r x"])
def test_what_is_no_name_is_refused_and_never_read_as_another_package(name):
    (kept,) = names(PYTHON, name)
    asked = read({**manifest(), **add_dependencies(manifest(), [kept], PYTHON)})
    assert asked.refused
    assert {requirement.name for requirement in asked.requirements} == {"pytest", "setuptools"}


def test_dependencies_are_added_once():
    added = add_dependencies(manifest(), ["flask", "httpx"], PYTHON)
    assert tomllib.loads(added["pyproject.toml"].decode())["project"]["dependencies"] == ["flask", "httpx"]
    assert add_dependencies({**manifest(), **added}, ["flask"], PYTHON) == {}
    more = add_dependencies({**manifest(), **added}, ["flask", "rich"], PYTHON)
    assert tomllib.loads(more["pyproject.toml"].decode())["project"]["dependencies"] == ["flask", "httpx", "rich"]
    package = json.loads(add_dependencies(manifest("node"), ["express"], NODE)["package.json"])
    assert (package["dependencies"], package["type"]) == ({"express": "*"}, "module")
    assert add_dependencies({}, ["flask"], PYTHON) == {}
