"""Where environments are stored, what the downloading programs are passed, and what their refusals mean."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PortError
from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.stage import StageResult, compute_key, finish, lock_environment, run
from redstart.toolkit.languages.node.package_install import parse_lock_entries, prepare_node, strip_lock
from redstart.toolkit.languages.node.packages import NodePackages
from redstart.toolkit.languages.python.packages import PythonPackages
from redstart.toolkit.languages.python.pip import explain_refusals, find_pip, find_yanked


@pytest.mark.slow
def test_only_index_variables_are_passed_on(tmp_path: Path) -> None:
    environ = {
        "PIP_INDEX_URL": "x",
        "https_proxy": "y",
        "OPENAI_API_KEY": "secret",
        "PYTHONPATH": "/evil",
        "NODE_OPTIONS": "z",
    }
    result = run([sys.executable, "-c", "import os; print(sorted(os.environ))"], tmp_path, environ)
    assert {"PIP_INDEX_URL", "https_proxy"} <= set(eval(result.output))
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "NODE_OPTIONS"} & set(eval(result.output))
    with pytest.raises(PortError, match="cannot be started"):
        run([str(tmp_path / "none")], tmp_path, {})


def test_unfinished_environment_is_rebuilt(tmp_path: Path) -> None:
    with lock_environment(tmp_path, "k") as (folder, is_complete):
        assert not is_complete
        (folder / "half").write_text("")
    with lock_environment(tmp_path, "k") as (folder, is_complete):
        assert not is_complete
        assert list(folder.iterdir()) == []
        finish(folder)
    with lock_environment(tmp_path, "k") as (_, is_complete):
        assert is_complete


def test_environment_key_depends_on_the_lock_and_the_interpreter() -> None:
    assert len({compute_key("a", "3.11"), compute_key("b", "3.11"), compute_key("a", "3.12")}) == 3
    assert compute_key("a", "3.11") == compute_key("a", "3.11")


@pytest.mark.parametrize(
    ("text", "name", "phrase"),
    [
        ("ERROR: No matching distribution found for Acme_Lib>=2", "acme-lib", "no wheel that fits"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES ...\n    acme==1 from http://x/y:\n", "acme", "hashes differ"),
        ("ERROR: ResolutionImpossible: for help", "", "fit together"),
    ],
)
def test_pip_refusal_is_explained(text: str, name: str, phrase: str) -> None:
    (refusal,) = explain_refusals(StageResult(1, text))
    assert refusal.name == name
    assert phrase in refusal.reason


@pytest.mark.parametrize("text", ["WARNING: Retrying (Retry(total=1", "ERROR: something else", ""])
def test_machine_problem_is_not_a_refusal(text: str) -> None:
    with pytest.raises(PortError):
        explain_refusals(StageResult(1, text))


def test_withdrawn_version_is_reported() -> None:
    text = "WARNING: The candidate selected is a yanked version: 'acme' candidate (version 1.0 at x)"
    (refusal,) = find_yanked(StageResult(0, text))
    assert refusal.reason == "acme 1.0 was withdrawn by its authors."


def test_npm_lock_contains_no_address() -> None:
    strong = "sha512-" + "A" * 86 + "=="
    packages = {
        "": {"name": "x", "version": "1", "dependencies": {"a": "1"}},
        "node_modules/a": {"version": "1.0.0", "resolved": "https://x.invalid/a/-/a-1.0.0.tgz", "integrity": strong},
        "node_modules/b": {"version": "1.0.0", "resolved": "git+ssh://x.invalid/b", "integrity": strong},
        "node_modules/c": {"version": "1.0.0", "integrity": "sha1-x"},
        "node_modules/d": {"version": "1.0.0", "integrity": strong, "inBundle": True},
        "node_modules/e": {"version": "1.0.0", "integrity": strong, "name": "acme-evil"},
        "node_modules/width-cjs": {"version": "1.0.0", "integrity": strong, "name": "string-width"},
        "node_modules/g": {"version": "1.0.0", "integrity": strong, "os": ["plan9"]},
        "node_modules/h": {"version": "1.0.0", "integrity": strong, "os": ["!plan9"], "cpu": ["!mips"]},
    }
    text = strip_lock(json.dumps({"name": "x", "lockfileVersion": 3, "packages": packages}))
    assert "https:" not in text
    assert '"x"' not in text
    entries = {entry.name: entry for entry in parse_lock_entries(text)}
    assert {name for name, item in entries.items() if item.fault} == {"b", "c", "d", "e"}
    assert entries["string-width"].fault == ""
    assert [name for name, item in entries.items() if not item.is_for_this_machine] == ["g"]


def test_missing_npm_error_has_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        prepare_node(InstallRequest(language="node", requirements=()), tmp_path, {"PATH": str(tmp_path)})
    assert caught.value.remedy


def test_pip_is_found_for_an_interpreter_without_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Debian's Python has no `ensurepip` unless one more package is installed, so the test brings its own.
    wheel_path = tmp_path / "ensurepip" / "_bundled" / "pip-26.0-py3-none-any.whl"
    wheel_path.parent.mkdir(parents=True)
    (tmp_path / "ensurepip" / "__init__.py").touch()
    wheel_path.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path / "python") in find_pip(tmp_path / "python", {"PATH": ""})


def test_missing_pip_error_names_the_package_that_provides_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ConfigError) as caught:
        find_pip(tmp_path / "python", {"PATH": str(tmp_path)})
    # `ensurepip` has nothing to install here. Otherwise it would have been used.
    assert "python3-pip" in caught.value.remedy
    assert "ensurepip" not in caught.value.remedy


def test_installed_packages_are_visible_to_the_tests(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/python/bin\n")
    environment = Environment(
        mount="/repo",
        python="/usr/bin/python3",
        read_only=("/opt/old",),
        variables={"PATH": "/usr/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    python = PythonPackages().with_packages(
        environment, InstallResult(folder=str(tmp_path), python=f"{tmp_path}/bin/python")
    )
    assert python.read_only == ("/opt/old", str(tmp_path), "/opt/python")
    assert python.variables == {"PATH": f"{tmp_path}/bin:/usr/bin", "VIRTUAL_ENV": str(tmp_path)}
    node = NodePackages().with_packages(environment, InstallResult(folder=str(tmp_path)))
    assert node.links == {"node_modules": f"{tmp_path}/node_modules"}
    assert node.python == environment.python
    assert node.variables["PATH"] == f"/usr/bin:{tmp_path}/node_modules/.bin"
