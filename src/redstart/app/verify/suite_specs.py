"""How the tests of both sides of a change run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from redstart.app.runs import create_suite
from redstart.app.verify.revisions import Revisions
from redstart.app.wire import AppContext
from redstart.app.workspace import MayLend, equip, prepare_run_setup
from redstart.core.errors import ConfigError
from redstart.core.run import RunSpec
from redstart.core.tasks import FixTask
from redstart.core.verification import SortedFile


class SuiteOptions(NamedTuple):
    """The user's options about the tests, besides the folder."""

    command: tuple[str, ...] = ()
    junit: str = ""
    """Where the command writes JUnit XML, relative to the project."""
    python: str | None = None


class SuiteSpecs(NamedTuple):
    """How the tests of each side run: in the environment of this machine, each as its own files say."""

    old: RunSpec
    new: RunSpec


def create_specs(
    app: AppContext,
    path: Path,
    options: SuiteOptions,
    revisions: Revisions,
    choose: Callable[[Sequence[str]], str],
    may_lend: MayLend | None,
) -> SuiteSpecs:
    """Find how the tests of both sides run. The callbacks decide as for `create_fix_run`.

    If the base has no suite, its tests run like those of the head. Raises `ConfigError` if the tests of the head cannot
    be determined.
    """
    prepare = partial(prepare_run_setup, app, path, command=options.command, python=options.python, choose=choose)
    head = revisions.head.snapshot
    new_setup = prepare(snapshot=head)
    try:
        old_setup = prepare(snapshot=revisions.base.snapshot)
    except ConfigError:  # the project has no suite yet
        old_setup = new_setup
    if not options.junit:
        new_setup = equip(app, new_setup, may_lend)
    suite = create_suite(app, new_setup, options.junit)
    new = RunSpec(task=FixTask(), base=head, suite=suite, sandbox=new_setup.limits, repo=new_setup.root.name)
    old_suite = suite.model_copy(
        update={"runner": old_setup.runner, "command": old_setup.command, "folder": old_setup.folder}
    )
    return SuiteSpecs(new.model_copy(update={"suite": old_suite}), new)


def choose_changed_suite(command: str, files: Sequence[SortedFile], folders: Sequence[str]) -> str:
    """Choose the only suite whose folder contains changed files. Raises `ConfigError` if there are several.

    `command` is what the user runs for one suite at a time.
    """
    touched = [folder for folder in folders if any(file.path.startswith(f"{folder}/") for file in files)]
    if len(touched) == 1:
        return touched[0]
    choices = "\n".join(f"  redstart {command} {folder}" for folder in touched or folders)
    problem = f"the change concerns {len(touched)} test suites" if touched else f"this repo has {len(folders)} suites"
    raise ConfigError(problem, remedy=f"{command} one at a time:\n{choices}")
