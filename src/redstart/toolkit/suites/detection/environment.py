"""Find the interpreter that runs the target's tests and the host paths that it needs to see.

Interpreters run on the host to report about themselves, but without `site`, so that nothing installed for them runs.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import ValidationError

from redstart.core.errors import ConfigError
from redstart.core.frozen import FrozenValue
from redstart.core.shell import Environment
from redstart.toolkit.suites.detection.history import History, find_history
from redstart.toolkit.suites.detection.ignored_files import drop_nested_paths, find_ignored
from redstart.toolkit.suites.detection.interpreters import choose

ANSWER_WITHIN = 20.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
"""Directories that every sandbox shows anyway."""
SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")

_MAPPING = re.compile(r"^MAPPING\b[^{\n]*(\{.*\})", re.MULTILINE)
_QUOTED_PATH = re.compile(r"['\"](/[^'\"]+)['\"]")
"""The package paths in the file that setuptools uses to find an editable install."""

_QUESTION = """\
import json, os, site, sys, sysconfig
from importlib.machinery import PathFinder
executable = sys.executable or ""
top = os.path.dirname(os.path.dirname(executable))
config = os.path.join(top, "pyvenv.cfg")
venv = os.path.isfile(config)
prefix = top if venv else sys.prefix
version = ".".join(str(part) for part in sys.version_info[:3])
sys.prefix = prefix  # as `site` would: a Debian's Python looks at it to tell an environment's folders from the system's
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


class Interpreter(FrozenValue):
    """What an interpreter reports about itself."""

    executable: str
    prefix: str
    base_prefix: str
    exec_prefix: str = ""
    version: str
    site_folders: tuple[str, ...] = ()
    """Where it finds installed packages, including the user's own directory."""
    has_pytest: bool


def ask_interpreter(
    python: str, *, folder: Path | None = None, environ: Mapping[str, str] | None = None
) -> Interpreter:
    """Start `python` once, in `folder` (which a version manager's shim depends on), and return its report.

    Raises `ConfigError` with a remedy if it cannot be started, does not answer in time or is not Python 3.8 or later.
    """
    remedy = "activate the project's environment, or choose its interpreter with --python"
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
        raise ConfigError(f"{python} did not answer within {ANSWER_WITHIN:.0f} seconds", remedy=remedy) from error
    except OSError as error:
        raise ConfigError(f"{python} cannot be started: {error.strerror or error}", remedy=remedy) from error
    lines = answer.stdout.decode("utf-8", "replace").splitlines()
    try:
        interpreter = Interpreter.model_validate(json.loads(lines[-1]))
    except (IndexError, ValueError, ValidationError) as error:
        output_lines = answer.stderr.decode("utf-8", "replace").strip().splitlines() or ["it printed nothing"]
        raise ConfigError(
            f"{python} did not answer as a Python interpreter: {output_lines[0].rstrip('.')}", remedy=remedy
        ) from error
    if tuple(int(part) for part in interpreter.version.split(".")[:2]) < (3, 8):
        raise ConfigError(f"{python} is Python {interpreter.version}; Python 3.8 or later is needed", remedy=remedy)
    return interpreter


def find_environment(
    root: Path, *, folder: str = "", python: str | None = None, environ: Mapping[str, str]
) -> Environment:
    """Find the target's interpreter and build its environment. Raises what either of the two functions raises."""
    interpreter, reason = find_interpreter(root, folder=folder, python=python, environ=environ)
    return build_environment(root, interpreter, reason)


def find_interpreter(
    root: Path, *, folder: str = "", python: str | None = None, environ: Mapping[str, str]
) -> tuple[Interpreter, str]:
    """Find the target's interpreter for `folder` of `root` with `choose_interpreter`, and the reason for the choice.

    Raises `ConfigError` with a remedy if there is none.
    """
    mount = root.resolve()
    choice = choose(mount / folder, mount, python=python, environ=environ)
    return ask_interpreter(choice.python, folder=mount / folder, environ=environ), choice.reason


def build_environment(root: Path, interpreter: Interpreter, reason: str) -> Environment:
    """Build what an interpreter needs where `root` is mounted: installed packages, ignored files and git's history.

    Raises `ConfigError` with a remedy if that would expose the user's home directory.
    """
    mount = root.resolve()
    home = Path.home()
    folder = str(Path(interpreter.executable).parent)
    variables = {"PATH": ":".join(dict.fromkeys((folder, *SYSTEM_PATH)))}
    if interpreter.prefix != interpreter.base_prefix:
        variables["VIRTUAL_ENV"] = interpreter.prefix
    ignored = find_ignored(mount)
    installed = (mount / path for path in ignored.modules)
    read_only = _list_outermost(
        (
            *map(Path, _list_needed_paths(interpreter, mount, home)),
            *_find_linked_directories(interpreter, mount, home),
            *installed,
        )
    )
    environment = Environment(
        mount=str(mount),
        python=interpreter.executable,
        read_only=read_only,
        variables=variables,
        chosen=reason,
        copies=tuple(path for path in ignored.copies if not _is_visible(mount / path, read_only)),
        left_out=ignored.left_out,
    )
    if str(home) != "/":
        environment = environment.model_copy(update={"home": str(home)})
    history = find_history(mount)
    return environment if history is None else _with_history(environment, history)


def move_environment(environment: Environment, mount: Path) -> Environment:
    """Return the same interpreter for another directory, without anything of the original directory."""
    base = Environment(mount=str(mount), python=environment.python)
    return base.model_copy(
        update={name: getattr(environment, name) for name in ("read_only", "home", "variables", "chosen")}
    )


def _with_history(environment: Environment, history: History) -> Environment:
    borrowed = tuple(str(folder) for folder in history.borrowed)
    return environment.model_copy(
        update={
            "read_only": tuple(dict.fromkeys((*environment.read_only, *borrowed))),
            "git_objects": str(history.objects),
            "git_head": history.head,
            "git_refs": history.refs,
            "git_shallow": history.shallow_commits,
        }
    )


def _is_visible(path: Path, read_only: Iterable[str]) -> bool:
    """Whether a path is already visible, so that no copy can be placed there or around it."""
    return any(path.is_relative_to(item) or Path(item).is_relative_to(path) for item in read_only)


def _list_needed_paths(interpreter: Interpreter, mount: Path, home: Path) -> tuple[str, ...]:
    """List the paths that the interpreter needs, shortest first, none inside another."""
    prefixes = {interpreter.prefix, interpreter.base_prefix, interpreter.exec_prefix} - {"", "/"}
    needed: set[Path] = set()
    for prefix in (Path(item) for item in prefixes):
        # An environment created in the root itself would hide the workspace that is mounted there.
        names = ("bin", "lib", "lib64", "include", "pyvenv.cfg") if prefix == mount else ()
        needed |= {prefix / name for name in names if (prefix / name).exists()} if names else {prefix}
    needed |= {Path(folder) for folder in interpreter.site_folders}
    needed |= set(_follow_links(Path(interpreter.executable)))
    needed.add(Path(interpreter.executable).resolve().parent)
    outside = [path for path in needed if not any(path.is_relative_to(item) for item in SYSTEM)]
    for path in outside:
        if home.is_relative_to(path):
            raise ConfigError(
                f"the interpreter {interpreter.executable} is installed in {path}: making it visible in the sandbox "
                "would expose your whole home directory",
                remedy="create a virtual environment in its own directory and choose its interpreter with --python",
            )
    return _list_outermost(outside)


def _find_linked_directories(interpreter: Interpreter, mount: Path, home: Path) -> Iterable[Path]:
    """List other directories that this environment imports from through its path files: editable installs.

    A directory that would expose the user's home, or the real repo around the workspace, is skipped.
    """
    for folder in map(Path, interpreter.site_folders):
        entries = [line for file in folder.glob("*.pth") for line in _read_text(file).splitlines()]
        for file in folder.glob("__editable__*_finder.py"):
            if mapping := _MAPPING.search(_read_text(file)):
                entries += _QUOTED_PATH.findall(mapping[1])
        for path in (Path(name.strip()) for name in entries if name.startswith("/")):
            places = (path, path.resolve())
            shows_too_much = any(protected.is_relative_to(place) for protected in (home, mount) for place in places)
            there_anyway = any(path.is_relative_to(item) for item in (*SYSTEM, mount))
            if path.is_dir() and ".." not in path.parts and not shows_too_much and not there_anyway:
                yield path


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _follow_links(executable: Path) -> Iterable[Path]:
    """Yield the targets of the program's chain of symbolic links."""
    seen: set[Path] = set()
    while executable.is_symlink() and executable not in seen:
        seen.add(executable)
        executable = executable.parent / executable.readlink()
        yield executable


def _list_outermost(paths: Iterable[Path]) -> tuple[str, ...]:
    """List the paths that lie in no other path, shortest first."""
    return tuple(sorted({str(path) for path in drop_nested_paths(paths)}, key=lambda name: (len(name), name)))
