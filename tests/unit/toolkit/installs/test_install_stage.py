"""Where environments are stored, what the downloading programs are passed, and what their refusals mean."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError, PortError
from redstart.core.shell import Environment
from redstart.ports.install.port import InstallRequest, InstallResult
from redstart.toolkit.installs.stage import StageResult, finish, key_of, place_of, run
from redstart.toolkit.languages.node.installing import entries_of, prepare_node, stripped
from redstart.toolkit.languages.node.packages import NodePackages
from redstart.toolkit.languages.python.packages import PythonPackages
from redstart.toolkit.languages.python.pip import pip_for, refusals, yanked


@pytest.mark.slow
def test_only_what_leads_to_the_index_is_passed_on(tmp_path: Path) -> None:
    environ = {
        "PIP_INDEX_URL": "x",
        "https_proxy": "y",
        "OPENAI_API_KEY": "secret",
        "PYTHONPATH": "/evil",
        "NODE_OPTIONS": "z",
    }
    done = run([sys.executable, "-c", "import os; print(sorted(os.environ))"], tmp_path, environ)
    assert {"PIP_INDEX_URL", "https_proxy"} <= set(eval(done.output))
    assert not {"OPENAI_API_KEY", "PYTHONPATH", "NODE_OPTIONS"} & set(eval(done.output))
    with pytest.raises(PortError, match="cannot be started"):
        run([str(tmp_path / "none")], tmp_path, {})


def test_an_unfinished_environment_is_begun_anew(tmp_path: Path) -> None:
    with place_of(tmp_path, "k") as (folder, complete):
        assert not complete
        (folder / "half").write_text("")
    with place_of(tmp_path, "k") as (folder, complete):
        assert not complete
        assert list(folder.iterdir()) == []
        finish(folder)
    with place_of(tmp_path, "k") as (_, complete):
        assert complete


def test_the_key_is_of_the_lock_and_of_whom_it_is_for() -> None:
    assert len({key_of("a", "3.11"), key_of("b", "3.11"), key_of("a", "3.12")}) == 3
    assert key_of("a", "3.11") == key_of("a", "3.11")


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("ERROR: No matching distribution found for Acme_Lib>=2", "acme-lib", "no wheel that fits"),
        ("THESE PACKAGES DO NOT MATCH THE HASHES ...\n    acme==1 from http://x/y:\n", "acme", "hashes differ"),
        ("ERROR: ResolutionImpossible: for help", "", "fit together"),
    ],
)
def test_what_pip_refuses_in_words(text: str, name: str, words: str) -> None:
    (refusal,) = refusals(StageResult(1, text))
    assert refusal.name == name
    assert words in refusal.reason


@pytest.mark.parametrize("text", ["WARNING: Retrying (Retry(total=1", "ERROR: something else", ""])
def test_trouble_of_the_machine_is_no_refusal(text: str) -> None:
    with pytest.raises(PortError):
        refusals(StageResult(1, text))


def test_a_withdrawn_version_is_named() -> None:
    text = "WARNING: The candidate selected is a yanked version: 'acme' candidate (version 1.0 at x)"
    (refusal,) = yanked(StageResult(0, text))
    assert refusal.reason == "acme 1.0 was withdrawn by its authors."


def test_a_lock_of_npm_names_no_address() -> None:
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
    text = stripped(json.dumps({"name": "x", "lockfileVersion": 3, "packages": packages}))
    assert "https:" not in text
    assert '"x"' not in text
    found = {entry.name: entry for entry in entries_of(text)}
    assert {name for name, item in found.items() if item.fault} == {"b", "c", "d", "e"}
    assert found["string-width"].fault == ""
    assert [name for name, item in found.items() if not item.here] == ["g"]


def test_without_npm_it_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        prepare_node(InstallRequest(language="node", requirements=()), tmp_path, {"PATH": str(tmp_path)})
    assert raised.value.remedy


def test_pip_is_found_for_an_interpreter_that_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Debian's Python has no `ensurepip` unless one more package is installed, so the test brings its own.
    bundled = tmp_path / "ensurepip" / "_bundled" / "pip-26.0-py3-none-any.whl"
    bundled.parent.mkdir(parents=True)
    (tmp_path / "ensurepip" / "__init__.py").touch()
    bundled.touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    assert str(tmp_path / "python") in pip_for(tmp_path / "python", {"PATH": ""})


def test_without_pip_the_remedy_names_what_brings_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(ConfigError) as raised:
        pip_for(tmp_path / "python", {"PATH": str(tmp_path)})
    # `ensurepip` has nothing to install here. Otherwise it would have been used.
    assert "python3-pip" in raised.value.remedy
    assert "ensurepip" not in raised.value.remedy


def test_what_was_installed_is_shown_to_the_tests(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /opt/python/bin\n")
    plain = Environment(
        mount="/repo",
        python="/usr/bin/python3",
        read_only=("/opt/old",),
        variables={"PATH": "/usr/bin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    python = PythonPackages().with_packages(plain, InstallResult(folder=str(tmp_path), python=f"{tmp_path}/bin/python"))
    assert python.read_only == ("/opt/old", str(tmp_path), "/opt/python")
    assert python.variables == {"PATH": f"{tmp_path}/bin:/usr/bin", "VIRTUAL_ENV": str(tmp_path)}
    node = NodePackages().with_packages(plain, InstallResult(folder=str(tmp_path)))
    assert node.links == {"node_modules": f"{tmp_path}/node_modules"}
    assert node.python == plain.python
    assert node.variables["PATH"] == f"/usr/bin:{tmp_path}/node_modules/.bin"
