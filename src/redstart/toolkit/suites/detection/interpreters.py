"""Choose the project's interpreter among those on a developer's machine.

Nothing is created, synchronized or fetched. A program from the repo itself is never started: an environment in the
repo counts only if it leads to an interpreter outside the repo, and no tool is asked that would load a plugin from the
repo.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, cast

from redstart.core.errors import ConfigError

ANSWER_WITHIN = 10.0
OFFLINE = {
    "UV_OFFLINE": "1",
    "UV_NO_SYNC": "1",
    "UV_PYTHON_DOWNLOADS": "never",
    "POETRY_NO_INTERACTION": "1",
    "PIP_NO_INDEX": "1",
    "PIP_NO_INPUT": "1",
    "NO_COLOR": "1",
}
OLDEST = (3, 8)
ON_PATH = "python3 on PATH"
"""The reason for an interpreter that belongs to no environment of the project."""


class InterpreterChoice(NamedTuple):
    python: str
    reason: str
    """The reason, as the user reads it: `--python`, `.venv in the project`, `poetry`, `python3 on PATH`."""


def choose(root: Path, top: Path, *, python: str | None, environ: Mapping[str, str]) -> InterpreterChoice:
    """Choose the project's interpreter. `top` is the root of the git repo that contains `root`, or `root` itself.

    The order is: `python`, the active environment, `.venv` or `venv` in the root or the top, what the project's own
    tool (uv, poetry, pdm, hatch) uses, an environment of tox or nox, `python3` on PATH. Raises `ConfigError` with a
    remedy if there is none.
    """
    path = environ.get("PATH", "")
    if python:
        return InterpreterChoice(_resolve_program(python, path), "--python")
    for choice in _find_candidates(root, top, environ):
        return choice
    if on_path := shutil.which("python3", path=path):
        return InterpreterChoice(on_path, ON_PATH)
    raise ConfigError("no Python interpreter found", remedy="install python3, or choose an interpreter with --python")


def _resolve_program(python: str, path: str) -> str:
    if Path(python).is_dir():
        return str(get_program(Path(python)))
    program = str(Path(python).absolute()) if "/" in python else shutil.which(python, path=path)
    if program:
        return program
    raise ConfigError(f"{python} is not on PATH", remedy="give the interpreter's path with --python")


def _find_candidates(root: Path, top: Path, environ: Mapping[str, str]) -> Iterator[InterpreterChoice]:
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        active = environ.get(variable, "")
        # Conda's base is active in every shell, so it means nothing. If the user wants it, it is first on PATH anyway.
        is_base = variable == "CONDA_PREFIX" and environ.get("CONDA_DEFAULT_ENV") == "base"
        if active and not is_base and get_program(Path(active)).exists():
            yield InterpreterChoice(str(get_program(Path(active))), variable)
    folders = ((root, "the project"), (top, "the repository's root"))
    for folder, place in dict(folders[::-1]).items() if root == top else folders:
        for name in (".venv", "venv"):
            if is_user_environment(folder / name, top):
                yield InterpreterChoice(str(get_program(folder / name)), f"{name} in {place}")
    for tool, environment in _find_tool_environments(root, top, environ):
        if environment.is_absolute() and _is_environment(environment) and _can_be_started(environment, top):
            yield InterpreterChoice(str(get_program(environment)), tool)
    for folder in dict.fromkeys((root, top)):
        for tool_folder in (".tox", ".nox"):
            for environment in _rank_session_environments(folder / tool_folder, top):
                yield InterpreterChoice(str(get_program(environment)), f"{tool_folder}/{environment.name}")


def get_program(environment: Path) -> Path:
    return environment.absolute() / "bin" / "python"


def is_user_environment(environment: Path, root: Path) -> bool:
    """Whether a virtual environment in the repo leads to an interpreter outside the repo.

    It runs on the host without a question to the user. An environment whose program or standard library comes with the
    repo is not the user's own.
    """
    config = _read_configuration(environment)
    program = get_program(environment)
    home = Path(config.get("home", ""))
    if not config.get("home") or not program.exists():
        return False
    return not any(not item.is_absolute() or item.resolve().is_relative_to(root) for item in (home, program))


def _is_environment(folder: Path) -> bool:
    return (folder / "pyvenv.cfg").is_file() and get_program(folder).exists()


def _can_be_started(environment: Path, root: Path) -> bool:
    return not environment.resolve().is_relative_to(root) or is_user_environment(environment, root)


def _read_configuration(environment: Path) -> dict[str, str]:
    try:
        text = (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


# -- tools ---------------------------------------------------------------------------------------------------------


def _find_tool_environments(root: Path, top: Path, environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """List the environments that the project's management tools name, whether they exist or not."""
    folders = list(dict.fromkeys((root, top)))
    tables = _merge_tool_tables(folders)

    def uses_tool(tool: str, *files: str) -> bool:
        return tool in tables or any((folder / name).is_file() for folder in folders for name in files)

    def has_any(*names: str) -> bool:
        return any((folder / name).exists() for folder in folders for name in names)

    if uses_tool("uv", "uv.lock"):
        if configured := environ.get("UV_PROJECT_ENVIRONMENT"):
            lock = next((folder for folder in folders if (folder / "uv.lock").is_file()), root)
            yield "uv", lock / configured
        # uv would start the interpreter of a `.venv` here, which is not the user's own, as found above.
        elif not has_any(".venv"):
            yield from _answer(
                "uv", ("python", "find", "--offline", "--no-python-downloads"), root, environ, program=True
            )
    if uses_tool("poetry", "poetry.lock"):
        # This creates nothing. With environment creation disabled, poetry would not name an existing one either.
        yield from _answer("poetry", ("--no-plugins", "env", "info", "--path"), root, environ)
    if uses_tool("pdm", "pdm.lock"):
        # pdm itself would create a missing environment and load plugins from the repo.
        for folder in folders:
            if (folder / ".pdm-python").is_file():
                text = (folder / ".pdm-python").read_text(encoding="utf-8", errors="replace").strip()
                yield "pdm", Path(text).parent.parent
    if _uses_hatch_environments(tables.get("hatch"), has_any("hatch.toml")):
        yield from _answer("hatch", ("env", "find"), root, environ)


def _answer(
    tool: str, arguments: tuple[str, ...], root: Path, environ: Mapping[str, str], *, program: bool = False
) -> Iterator[tuple[str, Path]]:
    """Yield the environment that the tool's last line names, by directory or by program. Nothing if the tool fails."""
    executable = shutil.which(tool, path=environ.get("PATH", ""))
    if executable is None or Path(executable).resolve().is_relative_to(root):
        return
    try:
        completed = subprocess.run(
            (executable, *arguments),
            cwd=root,
            env={**environ, **OFFLINE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_WITHIN,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return
    lines = completed.stdout.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if completed.returncode == 0 and last:
        yield tool, Path(last).parent.parent if program else Path(last)


def _merge_tool_tables(folders: list[Path]) -> dict[str, object]:
    """Merge the `tool.*` tables of the pyproject.toml files. The innermost directory wins."""
    merged: dict[str, object] = {}
    for folder in reversed(folders):
        try:
            tool = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")).get("tool")
        except (OSError, ValueError):
            continue
        if isinstance(tool, dict):
            merged |= cast("dict[str, object]", tool)
    return merged


def _uses_hatch_environments(table: object, own_file: bool) -> bool:
    """Whether hatch manages environments here and is safe to ask: with some tables it would run code from the repo."""
    if own_file or not isinstance(table, dict):
        return False
    settings = cast("dict[str, object]", table)
    metadata = settings.get("metadata", {})
    has_hooks = not isinstance(metadata, dict) or "hooks" in metadata
    return "envs" in settings and "env" not in settings and not has_hooks


# -- tox and nox ---------------------------------------------------------------------------------------------------


def _rank_session_environments(folder: Path, top: Path) -> list[Path]:
    """Rank the environments of test sessions: those with pytest first, then the newest version first."""
    if not folder.is_dir():
        return []
    usable = [path for path in folder.iterdir() if not path.name.startswith(".") and is_user_environment(path, top)]
    ranked = [(_has_pytest(item), _get_version(item), item.name) for item in usable]
    return [folder / name for _, version, name in sorted(ranked, reverse=True) if version >= OLDEST]


def _has_pytest(environment: Path) -> bool:
    return any(environment.glob("lib/python*/site-packages/pytest/__init__.py"))


def _get_version(environment: Path) -> tuple[int, ...]:
    config = _read_configuration(environment)
    numbers = re.findall(r"\d+", config.get("version_info") or config.get("version") or "")
    return tuple(int(number) for number in numbers[:2])
