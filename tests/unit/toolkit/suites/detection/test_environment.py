from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from redstart.core.errors import ConfigError
from redstart.toolkit.suites.detection import environment as kit
from redstart.toolkit.suites.detection.environment import Interpreter, ask_interpreter, find_environment

pytestmark = pytest.mark.slow

BASE = Path(sys.base_prefix)
BASE_PYTHON = str(Path(sys.executable).resolve())
PATH = {"PATH": f"{Path(BASE_PYTHON).parent}:/usr/bin:/bin"}
SYSTEM_PYTHON = Path("/usr/bin/python3")
"""On Debian, it keeps packages of the system and packages of an environment in separate folders."""
PYTHONS = sorted({BASE_PYTHON, *([str(SYSTEM_PYTHON.resolve())] if SYSTEM_PYTHON.exists() else [])})

OLD = {"executable": "x", "prefix": "x", "base_prefix": "x", "version": "3.7.1", "has_pytest": False}


def make_venv(folder: Path, python: str = BASE_PYTHON) -> Path:
    subprocess.run([python, "-m", "venv", "--without-pip", folder], check=True)
    return folder


def put_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_venv(tmp_path_factory.mktemp("elsewhere") / "env")


def test_an_interpreter_speaks_of_itself(venv: Path) -> None:
    said = ask_interpreter(str(venv / "bin" / "python"))
    assert said.executable == str(venv / "bin" / "python")
    assert said.prefix == str(venv)
    assert Path(said.base_prefix).resolve() == BASE.resolve()
    assert said.version == ".".join(str(part) for part in sys.version_info[:3])
    assert not said.has_pytest


def test_pytest_is_seen_where_it_is_installed() -> None:
    assert ask_interpreter(sys.executable).has_pytest


@pytest.mark.parametrize("python", PYTHONS)
def test_what_is_installed_in_an_environment_is_found_whoever_built_its_python(tmp_path: Path, python: str) -> None:
    venv = make_venv(tmp_path / "env", python)
    (folder,) = venv.glob("lib/python*/site-packages")
    (folder / "pytest.py").write_text("")
    said = ask_interpreter(str(venv / "bin" / "python"))
    assert (said.site_folders, said.has_pytest) == ((str(folder),), True)


def test_nothing_that_is_installed_runs(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "env")
    (folder,) = venv.glob("lib/python*/site-packages")
    mark = tmp_path / "mark"
    (folder / "evil.pth").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n")
    ask_interpreter(str(venv / "bin" / "python"))
    assert not mark.exists()


def test_the_order(tmp_path: Path, venv: Path) -> None:
    root = tmp_path / "repo"
    own = make_venv(root / "venv")
    active = {**PATH, "VIRTUAL_ENV": str(venv)}
    assert find_environment(root, python=BASE_PYTHON, environ=active).python == BASE_PYTHON
    assert find_environment(root, python=str(own), environ=active).python == str(own / "bin" / "python")
    assert find_environment(root, environ=active).python == str(venv / "bin" / "python")
    gone = {**PATH, "VIRTUAL_ENV": str(tmp_path / "gone")}
    assert find_environment(root, environ=gone).python == str(own / "bin" / "python")
    hidden = make_venv(root / ".venv")
    assert find_environment(root, environ=PATH).python == str(hidden / "bin" / "python")
    bare = tmp_path / "bare"
    bare.mkdir()
    assert Path(find_environment(bare, environ=PATH).python).resolve() == Path(BASE_PYTHON)


def test_what_is_visible(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    venv = make_venv(root / ".venv")
    link = tmp_path / "link"
    link.symlink_to(root)
    found = find_environment(link, environ=PATH)
    assert found.mount == str(root.resolve())
    assert str(venv) in found.read_only
    if not BASE.is_relative_to("/usr"):
        assert str(BASE) in found.read_only
    assert list(found.read_only) == sorted(found.read_only, key=len)
    assert not any(path.startswith("/usr/") for path in found.read_only)
    assert found.home == str(Path.home())
    assert found.variables["PATH"].split(":")[0] == str(venv / "bin")
    assert found.variables["VIRTUAL_ENV"] == str(venv)


def test_every_stop_of_a_chain_of_links_is_visible(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(BASE_PYTHON)
    venv = tmp_path / "env"
    make_venv(venv)
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(tools / "python")
    assert str(tools / "python") in find_environment(tmp_path, python=str(venv), environ=PATH).read_only


def test_an_environment_in_the_root_itself_does_not_hide_the_workspace(tmp_path: Path) -> None:
    root = make_venv(tmp_path / "repo")
    found = find_environment(root, python=str(root / "bin" / "python"), environ=PATH)
    assert str(root) not in found.read_only
    assert {str(root / "bin"), str(root / "lib"), str(root / "pyvenv.cfg")} <= set(found.read_only)


def test_a_shim_is_asked_in_the_root_for_what_it_stands_for(tmp_path: Path, venv: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".choice").write_text(str(venv / "bin" / "python"))
    put_script(tmp_path / "shims" / "python3", 'exec "$(cat .choice)" "$@"')
    environ = {"PATH": f"{tmp_path / 'shims'}:/usr/bin:/bin"}
    found = find_environment(tmp_path / "repo", environ=environ)
    assert found.python == str(venv / "bin" / "python")
    assert str(tmp_path / "shims") not in found.read_only


@pytest.mark.parametrize("trap", ["program", "library"])
def test_an_interpreter_that_came_with_the_repo_is_not_started(tmp_path: Path, trap: str) -> None:
    root = tmp_path / "repo"
    mark = tmp_path / "mark"
    venv = make_venv(root / ".venv")
    if trap == "program":
        (venv / "bin" / "python").unlink()
        put_script(venv / "bin" / "python", f"touch {mark}")
    else:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        (root / "base" / "lib" / version / "encodings").mkdir(parents=True)
        (root / "base" / "lib" / version / "os.py").write_text("")
        (root / "base" / "lib" / version / "encodings" / "__init__.py").write_text(f"open({str(mark)!r}, 'w')\n")
        (venv / "pyvenv.cfg").write_text(f"home = {root / 'base' / 'bin'}\n")
    found = find_environment(root, environ=PATH)
    assert not mark.exists()
    assert Path(found.python).resolve() == Path(BASE_PYTHON)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo no; exit 1", "did not answer as a Python"),
        ("echo 'shim: no version is set.' >&2; exit 127", "shim: no version is set"),
        (f"echo '{json.dumps(OLD)}'", "Python 3.8 or later"),
    ],
)
def test_what_is_no_interpreter_is_refused_with_a_remedy(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        ask_interpreter(str(put_script(tmp_path / "python", script)))
    assert "--python" in caught.value.remedy


def test_one_that_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "ANSWER_WITHIN", 0.2)
    with pytest.raises(ConfigError, match="did not answer within"):
        ask_interpreter(str(put_script(tmp_path / "python", "exec sleep 30")))


@pytest.mark.parametrize("python", ["no-such-python", "/no/such/python"])
def test_one_that_is_not_there_is_refused(tmp_path: Path, python: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_environment(tmp_path, python=python, environ=PATH)
    assert "--python" in caught.value.remedy


def test_no_interpreter_at_all(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Python interpreter"):
        find_environment(tmp_path, environ={"PATH": str(tmp_path)})


def test_the_users_home_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_venv(tmp_path / "home")
    (home / "repo").mkdir()
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(ConfigError, match="home directory"):
        find_environment(home / "repo", python=str(home), environ={**os.environ, "HOME": str(home)})


def test_no_home_but_the_root_of_all_is_named(tmp_path: Path, venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert find_environment(tmp_path, python=str(venv), environ=PATH).home == "/home/redstart"


def test_an_interpreter_is_a_value() -> None:
    said = ask_interpreter(sys.executable)
    assert Interpreter.model_validate_json(said.model_dump_json()) == said


def test_other_projects_that_are_installed_in_place_are_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, home = tmp_path / "all" / "repo", tmp_path / "home"
    venv = make_venv(root / ".venv")
    (folder,) = venv.glob("lib/python*/site-packages")
    for name in ("sibling/src", "mapped/pkg", "quoted/pkg", "home/lib", "all/repo/src"):
        (tmp_path / name).mkdir(parents=True)
    too_much = (tmp_path, tmp_path / "all", home, home / "lib" / "..", root, root / "src", tmp_path / "gone", "/")
    lines = [str(path) for path in too_much] + ["import os; os.environ", "relative"]
    (folder / "all.pth").write_text("\n".join([*lines, str(tmp_path / "sibling" / "src"), ""]))
    mapping = f"MAPPING: dict[str, str] = {{'pkg': '{tmp_path / 'mapped' / 'pkg'}'}}\nOTHER = '{tmp_path / 'quoted'}'\n"
    (folder / "__editable___pkg_1_finder.py").write_text(mapping)
    monkeypatch.setenv("HOME", str(home))
    found = find_environment(root, environ=PATH)
    added = [path for path in found.read_only if path.startswith(str(tmp_path)) and path != str(venv)]
    assert sorted(added) == [str(tmp_path / "mapped" / "pkg"), str(tmp_path / "sibling" / "src")]


def test_what_is_visible_anyway_is_not_copied(tmp_path: Path) -> None:
    root = make_venv(tmp_path / "repo")
    (root / ".gitignore").write_text("bin\nlib\nlib64\ninclude\npyvenv.cfg\n*.so\n")
    (root / "a.so").touch()
    subprocess.run(["git", "init", "-q", root], check=True)
    assert find_environment(root, python=str(root), environ=PATH).copies == ("a.so",)
