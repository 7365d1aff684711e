"""A plugin of tox 4: its environments run what is installed in one that is there already.

tox would make an environment and fill it from the network. Here it makes an empty one, and what it runs in it is the
interpreter and the programs that `REDSTART_PYTHON` names.
"""

import os
from pathlib import Path

from tox.plugin import impl
from tox.tox_env.python.runner import PythonRun

PYTHON = "REDSTART_PYTHON"
ALWAYS = ("PYTHONHASHSEED", "REDSTART_ROOT", "REDSTART_ADDOPTS", "REDSTART_SENTINEL")
UNLESS_SET = ("TZ", "LANG", "LC_ALL", "HOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE")


def nothing(_):
    """In place of an installation; an older tox has no option for that."""


@impl
def tox_add_core_config(state):
    state.conf.options.skip_pkg_install = True
    state.conf.options.skip_env_install = True
    for name in ("_install_deps", "_install_dependency_groups", "_install_pylock"):
        if hasattr(PythonRun, name):
            setattr(PythonRun, name, nothing)


@impl
def tox_before_run_commands(tox_env):
    python = Path(os.environ[PYTHON])
    own = tox_env.conf["set_env"]
    given = {name: os.environ[name] for name in ALWAYS if name in os.environ}
    for name, joint in (("PYTEST_ADDOPTS", " "), ("PYTHONPATH", os.pathsep)):
        parts = (own.load(name) if name in own else "", os.environ.get(name, ""))
        given[name] = joint.join(part for part in parts if part)
    own.update(given, override=True)
    own.update({name: os.environ[name] for name in UNLESS_SET if name in os.environ}, override=False)
    tox_env.conf["allowlist_externals"].append("*")
    redirect(tox_env, python)


def redirect(tox_env, python):
    """The environment's own interpreter, by whatever name, becomes the one that is to run the tests."""
    folder = Path(str(tox_env.conf["env_bin_dir"]))
    folder.mkdir(parents=True, exist_ok=True)
    for name in {"python", "python3", python.name, *(one.name for one in folder.glob("python*"))}:
        script = folder / name
        if script.is_symlink() or script.exists():
            script.unlink()
        script.write_text('#!/bin/sh\nexec "%s" "$@"\n' % python)  # noqa: UP031
        script.chmod(0o755)
    tox_env._paths = [folder, python.parent]
