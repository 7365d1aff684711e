"""What may change in a project's own manifest without changing its tests."""

from __future__ import annotations

import json

import pytest

from redstart.toolkit.patching.policy import is_about_packages

PYPROJECT = '[project]\nname = "a"\ndependencies = []\n\n[tool.pytest.ini_options]\ntestpaths = ["tests"]\n'
PACKAGE = {"name": "a", "scripts": {"test": "node --test"}, "dependencies": {}}


def test_manifest_dependencies_and_descriptions_may_change():
    changed_manifest = PYPROJECT.replace("dependencies = []", 'description = "d"\ndependencies = ["flask"]')
    assert is_about_packages("pyproject.toml", PYPROJECT.encode(), changed_manifest.encode())
    changed_package = json.dumps({**PACKAGE, "dependencies": {"express": "^5"}, "description": "d"}).encode()
    assert is_about_packages("sub/package.json", json.dumps(PACKAGE).encode(), changed_package)


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('["tests"]', '["other"]')),
        ("pyproject.toml", PYPROJECT, PYPROJECT + "[build-system]\nrequires = []\n"),
        ("pyproject.toml", PYPROJECT, PYPROJECT.replace('name = "a"', 'name = "b"')),
        ("pyproject.toml", PYPROJECT, "no toml ["),
        ("pyproject.toml", None, PYPROJECT),
        ("pyproject.toml", PYPROJECT, None),
        ("package.json", json.dumps(PACKAGE), json.dumps({**PACKAGE, "scripts": {"test": "true"}})),
        ("package.json", json.dumps(PACKAGE), json.dumps({**PACKAGE, "type": "module"})),
        ("package.json", json.dumps(PACKAGE), "[]"),
        ("setup.cfg", "a", "a"),
        ("conftest.py", PYPROJECT, PYPROJECT),
    ],
)
def test_manifest_change_that_can_affect_the_tests_is_not_allowed(path, before, after):
    old, new = (None if text is None else text.encode() for text in (before, after))
    assert is_about_packages(path, old, new) is False


def test_manifest_over_a_mebibyte_is_not_read():
    base = PYPROJECT.encode()
    filler = (1 << 20) - len(base) - 1
    assert is_about_packages("pyproject.toml", base, base + b"#" * filler + b"\n")
    assert not is_about_packages("pyproject.toml", base, base + b"#" * (filler + 1) + b"\n")


def test_unchanged_manifest_is_compared_without_a_project_section():
    table = b"[tool.a]\nb = 1\n"
    assert is_about_packages("pyproject.toml", table, table)
    assert not is_about_packages("pyproject.toml", table, b"[tool.a]\nb = 2\n")
    assert is_about_packages("pyproject.toml", b"project = 1\n", b"project = 1\n")


def test_list_is_no_manifest():
    assert not is_about_packages("package.json", b"[]", b"[]")
    assert not is_about_packages("package.json", b"{", b"{")
