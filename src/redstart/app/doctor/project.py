"""Checks of the project in a folder: its tests, their runner and their interpreter. None of its code runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from redstart.app.doctor.results import DoctorCheck, Health
from redstart.app.init import list_project_files, read_start
from redstart.app.settings import Settings
from redstart.app.settings.env_file import USUAL_NAME
from redstart.core.errors import ConfigError
from redstart.core.frozen import format_count
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import find_runner_language, find_test_language
from redstart.toolkit.suites.detection.environment import find_interpreter
from redstart.toolkit.suites.detection.history import find_work_root
from redstart.toolkit.suites.detection.suite_locations import SuitePlace, list_suites

MOST_FILES = 20_000
"""The maximum number of files to read. A folder with more files contains several projects, or takes too long."""
MAX_NAMED_SUITES = 3
"""The number of suites to name if there are several."""


def _check(name: str, health: Health, detail: str, remedy: str = "") -> DoctorCheck:
    return DoctorCheck(group="project", name=name, health=health, detail=detail, remedy=remedy)


def check_project(folder: Path, settings: Settings, environ: Mapping[str, str]) -> Iterator[DoctorCheck]:
    """Check how the tests of the folder would run. Count them by name, without collecting them."""
    if (folder / USUAL_NAME).is_file():
        yield _check(USUAL_NAME, Health.absent, "not loaded", "to read API keys from it: --env-file .env")
    paths = list(islice(list_project_files(folder), MOST_FILES + 1))
    if len(paths) > MOST_FILES:
        remedy = "run redstart doctor in the directory of a project"
        yield _check("tests", Health.absent, f"not counted: more than {MOST_FILES:,} files", remedy)
        return
    places = list_suites(paths, lambda name: read_start(folder / name))
    command = settings.tests.command
    if not places and not command:
        remedy = "let Redstart write one: redstart fix --issue TEXT; or give a test command: --test-cmd"
        yield _check("tests", Health.absent, "none found in this directory", remedy)
        return
    if len(places) > 1 and not command:
        folder_names = ", ".join(place.folder for place in places[:MAX_NAMED_SUITES]) + (
            ", …" if len(places) > MAX_NAMED_SUITES else ""
        )
        yield _check(
            "tests", Health.ok, f"{len(places)} suites: {folder_names}; choose one: redstart fix {places[0].folder}"
        )
        return
    place = places[0] if places else SuitePlace("", "pytest")
    yield _check("tests", Health.ok, f"{command or place.runner}: {_describe_test_counts(folder, place, paths)}")
    yield _check_interpreter(folder, place, environ)


def _describe_test_counts(folder: Path, place: SuitePlace, paths: Sequence[str]) -> str:
    language = find_runner_language(place.runner) or Language()
    inside = f"{place.folder}/" if place.folder else ""
    counts = [
        language.count_tests(read_start(folder / path) or b"")
        for path in paths
        if path.startswith(inside) and find_test_language(path) is language
    ]
    with_tests = [count for count in counts if count]
    return (
        f"{format_count(sum(with_tests), 'test')} in {format_count(len(with_tests), 'file')} (counted by name, not run)"
    )


def _check_interpreter(folder: Path, place: SuitePlace, environ: Mapping[str, str]) -> DoctorCheck:
    language = find_runner_language(place.runner)
    if language and (program := language.program):
        if shutil.which(program, path=environ.get("PATH", "")):
            return _check("runtime", Health.ok, f"{program} on PATH")
        name = language.program_name
        return _check("runtime", Health.fail, f"{name} is missing; this project's tests need it", f"install {name}")
    try:
        interpreter, reason = find_interpreter(
            find_work_root(folder.resolve()), folder=_find_path_in_repo(folder), environ=environ
        )
    except ConfigError as error:
        return _check("runtime", Health.fail, f"Python: {error}", error.remedy)
    detail = f"Python {interpreter.version} ({reason})"
    lent_runner = language.lent_runner if language else None
    if lent_runner and lent_runner.is_missing(place.runner, (), interpreter):
        remedy = (
            f"install it there: {interpreter.executable} -m pip install "
            f"{lent_runner.name}; or choose another one with --python"
        )
        return _check("runtime", Health.warn, f"{detail} has no {lent_runner.name}", remedy)
    return _check("runtime", Health.ok, detail)


def _find_path_in_repo(folder: Path) -> str:
    """Return the folder's path relative to the root of its git repo."""
    path = folder.resolve()
    root = find_work_root(path)
    return "" if path == root else path.relative_to(root).as_posix()
