"""Which packages each side of a change needs besides those that are installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from redstart.core.shell import Environment
from redstart.toolkit.installs.sides import ChangedPackages, ManifestChange, compare_sides
from redstart.toolkit.languages.python.versions import PythonVersions

UV_LOCK = '[[package]]\nname = "acme"\nversion = "{}"\nsource = {{ registry = "index" }}\n'
POETRY_LOCK = '[[package]]\nname = "Acme"\nversion = "{}"\n'
PDM_LOCK = '[[package]]\nname = "acme"\nversion = "{}"\ngroups = ["default"]\n'
PIPFILE_LOCK = '{{"default": {{"acme": {{"version": "=={}"}}}}}}'
PYPROJECT = '[project]\nname = "shop"\ndependencies = ["acme=={}"]\n'
EXTRA = '[project]\nname = "shop"\n[project.optional-dependencies]\ntest = ["acme=={}"]\n'
POETRY = '[tool.poetry.group.test.dependencies]\nacme = "{}"\n'


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    """Return an environment for Python 3.11 with acme 1.0 and other 5."""
    for name, version in (("acme", "1.0"), ("other", "5")):
        info = tmp_path / "lib" / "python3.11" / "site-packages" / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    return Environment(mount="/project", python=str(tmp_path / "bin" / "python"))


def compare(environment: Environment, path: str, before: str | None, after: str | None) -> ChangedPackages:
    old, new = (None if text is None else text.encode() for text in (before, after))
    return compare_sides(PythonVersions(), [ManifestChange(path, old, new)], environment)


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("requirements.txt", "acme=={}\nother==5\n"),
        ("requirements/test.txt", "acme=={} \\\n    --hash=sha256:00\n"),
        ("test-requirements.txt", "acme=={}\n"),
        ("constraints.txt", "acme=={}\n"),
        ("uv.lock", UV_LOCK),
        ("poetry.lock", POETRY_LOCK),
        ("pdm.lock", PDM_LOCK),
        ("Pipfile.lock", PIPFILE_LOCK),
        ("pyproject.toml", PYPROJECT),
        ("pyproject.toml", EXTRA),
        ("pyproject.toml", POETRY),
    ],
)
def test_side_that_differs_from_what_is_installed_needs_its_version(path: str, form: str, environment: Environment):
    bump = compare(environment, path, form.format("1.0"), form.format("2.0"))
    assert (dict(bump.old.packages), dict(bump.new.packages)) == ({}, {"acme": "acme==2.0"})
    back = compare(environment, path, form.format("2.0"), form.format("1.0"))
    assert (dict(back.old.packages), dict(back.new.packages)) == ({"acme": "acme==2.0"}, {})


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("requirements.txt", "acme>=1\n", "acme>=0.9\n"),
        ("requirements.txt", "acme==1.0\n", "# pinned\nacme==1.0\n"),
        ("requirements.txt", "acme==2 ; python_version < '3'\n", "acme==3 ; python_version < '3'\n"),
        ("docs/requirements.txt", "sphinx==7\nfuro==1\n", "sphinx==8\nfuro==1\nmyst==2\n"),
        ("pyproject.toml", '[project]\nversion = "1"\n', '[project]\nversion = "2"\n'),
        ("uv.lock", UV_LOCK.format("1.0"), UV_LOCK.format("1.0") + '[[package]]\nname = "new"\nversion = "1"\n'),
        ("package-lock.json", "{}", '{"packages": {}}'),
        ("README.md", "acme==1", "acme==2"),
    ],
    ids=[
        *("both fit", "a comment", "another Python", "not used by the tests", "the project itself"),
        *("for another machine", "another language", "no declaration"),
    ],
)
def test_change_that_fits_what_is_installed_needs_nothing(path: str, before: str, after: str, environment: Environment):
    packages = compare(environment, path, before, after)
    assert [(side.packages, side.problem) for side in (packages.old, packages.new)] == [({}, ""), ({}, "")]
    assert packages.lingering == ()


def test_added_package_is_needed_by_the_new_side_and_a_removed_one_is_named(environment: Environment):
    packages = compare(environment, "requirements.txt", "other==5\nacme\n", "other==5\nnew-thing>=3\n")
    assert (dict(packages.old.packages), dict(packages.new.packages)) == ({}, {"new-thing": "new-thing>=3"})
    assert packages.lingering == ("acme",)


@pytest.mark.parametrize(
    ("path", "before", "after", "problem"),
    [
        ("environment.yml", "a", "b", "environment.yml is not read: its form is not supported"),
        ("uv.lock", "[[", UV_LOCK.format("1.0"), "uv.lock is not read"),
        (
            "requirements.txt",
            "acme @ git+ssh://a/b@1\n",
            "acme @ git+ssh://a/b@2\n",
            "acme does not come from an index",
        ),
        ("requirements.txt", "acme @ git+ssh://a/b@1\n", "acme @ git+ssh://a/b@1\nother\n", ""),
        ("requirements.txt", "acme @ git+ssh://a/b@1\n", "acme==1.0\n", "acme does not come from an index"),
        ("uv.lock", UV_LOCK.format("3") + UV_LOCK.format("4"), UV_LOCK.format("1.0"), "several versions of acme"),
    ],
)
def test_old_side_whose_packages_are_unknown_has_a_problem(
    path: str, before: str, after: str, problem: str, environment: Environment
):
    packages = compare(environment, path, before, after)
    assert (packages.old.problem.startswith(problem), bool(packages.old.problem)) == (True, bool(problem))
    assert packages.new.problem == ""


def test_request_keeps_the_other_packages_as_they_are_installed(environment: Environment):
    versions = PythonVersions()
    lock = UV_LOCK.format("2.0") + '[[package]]\nname = "helper"\nversion = "7"\n'
    needs = compare(environment, "uv.lock", UV_LOCK.format("1.0"), lock).new
    request = versions.build_request(needs, versions.list_installed(environment), environment)
    assert [item.text for item in request.requirements] == ["acme==2.0"]
    assert (request.lock, request.trusted) == ("helper==7\nother==5\n", ("acme", "other"))
    assert "lock" in json.loads(request.model_dump_json())
