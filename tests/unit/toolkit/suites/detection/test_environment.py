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


def test_interpreter_describes_itself(venv: Path) -> None:
    interpreter = ask_interpreter(str(venv / "bin" / "python"))
    assert interpreter.executable == str(venv / "bin" / "python")
    assert interpreter.prefix == str(venv)
    assert Path(interpreter.base_prefix).resolve() == BASE.resolve()
    assert interpreter.version == ".".join(str(part) for part in sys.version_info[:3])
    assert not interpreter.has_pytest


def test_installed_pytest_is_detected() -> None:
    assert ask_interpreter(sys.executable).has_pytest


@pytest.mark.parametrize("python", PYTHONS)
def test_installed_packages_are_found_for_any_python_build(tmp_path: Path, python: str) -> None:
    venv = make_venv(tmp_path / "env", python)
    (folder,) = venv.glob("lib/python*/site-packages")
    (folder / "pytest.py").write_text("")
    interpreter = ask_interpreter(str(venv / "bin" / "python"))
    assert (interpreter.site_folders, interpreter.has_pytest) == ((str(folder),), True)


def test_installed_code_does_not_run(tmp_path: Path) -> None:
    venv = make_venv(tmp_path / "env")
    (folder,) = venv.glob("lib/python*/site-packages")
    mark = tmp_path / "mark"
    (folder / "evil.pth").write_text(f"import pathlib; pathlib.Path({str(mark)!r}).touch()\n")
    ask_interpreter(str(venv / "bin" / "python"))
    assert not mark.exists()


def test_interpreter_sources_are_tried_in_order(tmp_path: Path, venv: Path) -> None:
    root = tmp_path / "repo"
    project_env = make_venv(root / "venv")
    active_environ = {**PATH, "VIRTUAL_ENV": str(venv)}
    assert find_environment(root, python=BASE_PYTHON, environ=active_environ).python == BASE_PYTHON
    assert find_environment(root, python=str(project_env), environ=active_environ).python == str(
        project_env / "bin" / "python"
    )
    assert find_environment(root, environ=active_environ).python == str(venv / "bin" / "python")
    missing_environ = {**PATH, "VIRTUAL_ENV": str(tmp_path / "gone")}
    assert find_environment(root, environ=missing_environ).python == str(project_env / "bin" / "python")
    hidden_env = make_venv(root / ".venv")
    assert find_environment(root, environ=PATH).python == str(hidden_env / "bin" / "python")
    empty_folder = tmp_path / "bare"
    empty_folder.mkdir()
    assert Path(find_environment(empty_folder, environ=PATH).python).resolve() == Path(BASE_PYTHON)


def test_visible_paths_include_environment_and_base(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    venv = make_venv(root / ".venv")
    link = tmp_path / "link"
    link.symlink_to(root)
    environment = find_environment(link, environ=PATH)
    assert environment.mount == str(root.resolve())
    assert str(venv) in environment.read_only
    if not BASE.is_relative_to("/usr"):
        assert str(BASE) in environment.read_only
    assert list(environment.read_only) == sorted(environment.read_only, key=len)
    assert not any(path.startswith("/usr/") for path in environment.read_only)
    assert environment.home == str(Path.home())
    assert environment.variables["PATH"].split(":")[0] == str(venv / "bin")
    assert environment.variables["VIRTUAL_ENV"] == str(venv)


def test_every_link_of_a_chain_is_visible(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python").symlink_to(BASE_PYTHON)
    venv = tmp_path / "env"
    make_venv(venv)
    (venv / "bin" / "python").unlink()
    (venv / "bin" / "python").symlink_to(tools / "python")
    assert str(tools / "python") in find_environment(tmp_path, python=str(venv), environ=PATH).read_only


def test_environment_in_the_repo_root_does_not_hide_the_workspace(tmp_path: Path) -> None:
    root = make_venv(tmp_path / "repo")
    environment = find_environment(root, python=str(root / "bin" / "python"), environ=PATH)
    assert str(root) not in environment.read_only
    assert {str(root / "bin"), str(root / "lib"), str(root / "pyvenv.cfg")} <= set(environment.read_only)


def test_shim_is_resolved_from_the_repo_root(tmp_path: Path, venv: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / ".choice").write_text(str(venv / "bin" / "python"))
    put_script(tmp_path / "shims" / "python3", 'exec "$(cat .choice)" "$@"')
    environ = {"PATH": f"{tmp_path / 'shims'}:/usr/bin:/bin"}
    environment = find_environment(tmp_path / "repo", environ=environ)
    assert environment.python == str(venv / "bin" / "python")
    assert str(tmp_path / "shims") not in environment.read_only


@pytest.mark.parametrize("trap", ["program", "library"])
def test_interpreter_shipped_with_the_repo_is_not_started(tmp_path: Path, trap: str) -> None:
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
    environment = find_environment(root, environ=PATH)
    assert not mark.exists()
    assert Path(environment.python).resolve() == Path(BASE_PYTHON)


@pytest.mark.parametrize(
    ("script", "pattern"),
    [
        ("echo no; exit 1", "did not answer as a Python"),
        ("echo 'shim: no version is set.' >&2; exit 127", "shim: no version is set"),
        (f"echo '{json.dumps(OLD)}'", "Python 3.8 or later"),
    ],
)
def test_invalid_interpreter_is_refused_with_a_remedy(tmp_path: Path, script: str, pattern: str) -> None:
    with pytest.raises(ConfigError, match=pattern) as caught:
        ask_interpreter(str(put_script(tmp_path / "python", script)))
    assert "--python" in caught.value.remedy


def test_interpreter_that_does_not_answer_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "ANSWER_WITHIN", 0.2)
    with pytest.raises(ConfigError, match="did not answer within"):
        ask_interpreter(str(put_script(tmp_path / "python", "exec sleep 30")))


@pytest.mark.parametrize("python", ["no-such-python", "/no/such/python"])
def test_missing_interpreter_is_refused(tmp_path: Path, python: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_environment(tmp_path, python=python, environ=PATH)
    assert "--python" in caught.value.remedy


def test_absence_of_any_interpreter_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Python interpreter"):
        find_environment(tmp_path, environ={"PATH": str(tmp_path)})


def test_home_directory_is_not_exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_venv(tmp_path / "home")
    (home / "repo").mkdir()
    monkeypatch.setenv("HOME", str(home))
    with pytest.raises(ConfigError, match="home directory"):
        find_environment(home / "repo", python=str(home), environ={**os.environ, "HOME": str(home)})


def test_root_as_home_is_replaced(tmp_path: Path, venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/")
    assert find_environment(tmp_path, python=str(venv), environ=PATH).home == "/home/redstart"


def test_interpreter_survives_a_json_round_trip() -> None:
    interpreter = ask_interpreter(sys.executable)
    assert Interpreter.model_validate_json(interpreter.model_dump_json()) == interpreter


def test_editable_installs_of_other_projects_are_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, home = tmp_path / "all" / "repo", tmp_path / "home"
    venv = make_venv(root / ".venv")
    (folder,) = venv.glob("lib/python*/site-packages")
    for name in ("sibling/src", "mapped/pkg", "quoted/pkg", "home/lib", "all/repo/src"):
        (tmp_path / name).mkdir(parents=True)
    excluded_paths = (tmp_path, tmp_path / "all", home, home / "lib" / "..", root, root / "src", tmp_path / "gone", "/")
    lines = [str(path) for path in excluded_paths] + ["import os; os.environ", "relative"]
    (folder / "all.pth").write_text("\n".join([*lines, str(tmp_path / "sibling" / "src"), ""]))
    mapping = f"MAPPING: dict[str, str] = {{'pkg': '{tmp_path / 'mapped' / 'pkg'}'}}\nOTHER = '{tmp_path / 'quoted'}'\n"
    (folder / "__editable___pkg_1_finder.py").write_text(mapping)
    monkeypatch.setenv("HOME", str(home))
    environment = find_environment(root, environ=PATH)
    added_paths = [path for path in environment.read_only if path.startswith(str(tmp_path)) and path != str(venv)]
    assert sorted(added_paths) == [str(tmp_path / "mapped" / "pkg"), str(tmp_path / "sibling" / "src")]


def test_paths_already_visible_are_not_copied(tmp_path: Path) -> None:
    root = make_venv(tmp_path / "repo")
    (root / ".gitignore").write_text("bin\nlib\nlib64\ninclude\npyvenv.cfg\n*.so\n")
    (root / "a.so").touch()
    subprocess.run(["git", "init", "-q", root], check=True)
    assert find_environment(root, python=str(root), environ=PATH).copies == ("a.so",)
