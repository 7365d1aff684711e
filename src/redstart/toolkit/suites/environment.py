"""Which interpreter runs the target's tests, and what of the host must be visible for it.

This is the one place of the kit that starts a process, on the host: it asks interpreters about themselves. They are
asked without running `site`, so that nothing that was installed for them runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from redstart.core.errors import ConfigError
from redstart.core.noun import Noun
from redstart.core.shell import Environment

ANSWER_WITHIN = 20.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
"""What every sandbox shows anyway."""
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")

_QUESTION = """\
import json, os, site, sys, sysconfig
from importlib.machinery import PathFinder
executable = sys.executable or ""
top = os.path.dirname(os.path.dirname(executable))
config = os.path.join(top, "pyvenv.cfg")
venv = os.path.isfile(config)
prefix = top if venv else sys.prefix
version = ".".join(str(part) for part in sys.version_info[:3])
folders = site.getsitepackages([prefix])
user = ""
if not venv:
    folders += [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    user = site.getusersitepackages()
elif "include-system-site-packages = true" in open(config).read().lower():
    folders += site.getsitepackages([sys.base_prefix])
folders = [one for one in dict.fromkeys(folders + [user]) if one and os.path.isdir(one)]
print(json.dumps({
    "executable": executable, "prefix": prefix, "base_prefix": sys.base_prefix, "exec_prefix": sys.exec_prefix,
    "version": version, "site_folders": folders, "has_pytest": PathFinder.find_spec("pytest", folders) is not None,
}))
"""


class Interpreter(Noun):
    """What an interpreter said of itself."""

    executable: str
    prefix: str
    base_prefix: str
    exec_prefix: str = ""
    version: str
    site_folders: tuple[str, ...] = ()
    """Where it finds what was installed, the user's own folder included."""
    has_pytest: bool


def ask_interpreter(
    python: str, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Interpreter:
    """Starts `python` once, in `folder` (a version manager's shim chooses by it), and gives what it says of itself.

    Raises `ConfigError` with a remedy where it cannot be started, does not answer in time or is no Python 3.8 or later.
    """
    remedy = "Name an interpreter of the project's environment with --python, or activate that environment."
    try:
        answer = subprocess.run(
            [python, "-I", "-S", "-c", _QUESTION],
            capture_output=True,
            cwd=folder,
            env=None if environ is None else dict(environ),
            stdin=subprocess.DEVNULL,
            timeout=ANSWER_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{python} did not answer within {ANSWER_WITHIN:.0f} seconds.", remedy=remedy) from error
    except OSError as error:
        raise ConfigError(f"{python} cannot be started: {error.strerror or error}.", remedy=remedy) from error
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    try:
        said = Interpreter.model_validate(json.loads(lines[-1]))
    except (IndexError, ValueError, ValidationError) as error:
        why = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
        raise ConfigError(
            f"{python} did not answer as a Python interpreter: {why[0].rstrip('.')}.", remedy=remedy
        ) from error
    if tuple(int(part) for part in said.version.split(".")[:2]) < (3, 8):
        raise ConfigError(f"{python} is Python {said.version}; tests can be run from Python 3.8 on.", remedy=remedy)
    return said


def find_environment(root: Path, *, python: str | None = None, environ: Mapping[str, str]) -> Environment:
    """The target's environment, by the first of `python`, `VIRTUAL_ENV`, `.venv` or `venv` in the root, `python3`.

    Raises `ConfigError` with a remedy where there is no interpreter, or where showing it would show the user's home.
    """
    mount = root.resolve()
    chosen = _choose(mount, python, environ)
    interpreter = ask_interpreter(chosen, folder=mount, environ=environ)
    home = Path.home()
    folder = str(Path(interpreter.executable).parent)
    variables = {"PATH": ":".join(dict.fromkeys((folder, *SYSTEM_PATH)))}
    if interpreter.prefix != interpreter.base_prefix:
        variables["VIRTUAL_ENV"] = interpreter.prefix
    known = {"home": str(home)} if str(home) != "/" else {}
    return Environment(
        mount=str(mount),
        python=interpreter.executable,
        read_only=_visible(interpreter, mount, home),
        variables=variables,
        **known,
    )


def _choose(root: Path, python: str | None, environ: Mapping[str, str]) -> str:
    path = environ.get("PATH", "")
    if python:
        if Path(python).is_dir():
            return str(Path(python).absolute() / "bin" / "python")
        found = str(Path(python).absolute()) if "/" in python else shutil.which(python, path=path)
        if found:
            return found
        raise ConfigError(f"There is no program {python} on PATH.", remedy="Give the interpreter's path with --python.")
    active = environ.get("VIRTUAL_ENV", "")
    if active and _in_folder(Path(active)).exists():
        return str(_in_folder(Path(active)))
    for name in (".venv", "venv"):
        if _is_users_own(root / name, root):
            return str(_in_folder(root / name))
    if found := shutil.which("python3", path=path):
        return found
    raise ConfigError("No Python interpreter was found.", remedy="Install python3, or name one with --python.")


def _in_folder(environment: Path) -> Path:
    return environment.absolute() / "bin" / "python"


def _is_users_own(environment: Path, root: Path) -> bool:
    """Whether a virtual environment in the repo leads to an interpreter outside of it.

    It is started on the host, unasked. One whose program or standard library comes with the repo is not the user's.
    """
    try:
        config = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    pairs = [line.partition("=") for line in config.splitlines()]
    homes = [Path(value.strip()) for key, _, value in pairs if key.strip().lower() == "home"]
    program = _in_folder(environment)
    if not homes or not program.exists():
        return False
    return not any(not one.is_absolute() or one.resolve().is_relative_to(root) for one in (*homes, program))


def _visible(interpreter: Interpreter, mount: Path, home: Path) -> tuple[str, ...]:
    """The paths that the interpreter needs, shortest first, none inside another."""
    prefixes = {interpreter.prefix, interpreter.base_prefix, interpreter.exec_prefix} - {"", "/"}
    needed: set[Path] = set()
    for prefix in (Path(one) for one in prefixes):
        # An environment made in the root itself would hide the workspace that is mounted there.
        names = ("bin", "lib", "lib64", "include", "pyvenv.cfg") if prefix == mount else ()
        needed |= {prefix / name for name in names if (prefix / name).exists()} if names else {prefix}
    needed |= {Path(one) for one in interpreter.site_folders}
    needed |= set(_links(Path(interpreter.executable)))
    needed.add(Path(interpreter.executable).resolve().parent)
    outside = [path for path in needed if not any(path.is_relative_to(one) for one in SYSTEM)]
    for path in outside:
        if home.is_relative_to(path):
            raise ConfigError(
                f"The interpreter {interpreter.executable} is installed in {path}: to show it in the sandbox would "
                "show everything in your home folder.",
                remedy="Make a virtual environment in a folder of its own and name its interpreter with --python.",
            )
    return _outermost(outside)


def _links(executable: Path) -> Iterable[Path]:
    """What the program's chain of symbolic links leads over."""
    seen: set[Path] = set()
    while executable.is_symlink() and executable not in seen:
        seen.add(executable)
        executable = executable.parent / executable.readlink()
        yield executable


def _outermost(paths: Iterable[Path]) -> tuple[str, ...]:
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda one: (len(str(one)), str(one))):
        if not any(path.is_relative_to(one) for one in kept):
            kept.append(path)
    return tuple(str(path) for path in kept)
