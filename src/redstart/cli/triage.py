"""`redstart triage`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import echo_json
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.core.triage import Triage


def triage(
    path: Annotated[Path, typer.Argument(help="Directory of the project.")] = Path(),
    base: options.BaseRef = "",
    head: Annotated[
        str, typer.Option("--head", metavar="REF", help="Look at this branch, tag or commit (default: your files).")
    ] = "",
    junit: Annotated[
        Path | None,
        typer.Option("--junit", metavar="FILE", help="Run only the tests that failed in this JUnit file of a CI job."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="FILE", help="Run only the tests that failed in this log of a CI job."),
    ] = None,
    bisect: Annotated[
        bool, typer.Option("--bisect", help="Find the first bad commit of each test that is yours or already red.")
    ] = False,
    test_cmd: options.TestCommand = None,
    python: options.Python = None,
    no_input: options.NoInput = False,
    json: options.OneJson = False,
    verbose: options.ListAllTests = False,
    sandbox: options.SandboxKind = None,
    sandbox_image: options.SandboxImage = None,
    sandbox_cpus: options.SandboxCpus = None,
    sandbox_memory: options.SandboxMemory = None,
    unsafe_no_sandbox: options.Unsafe = False,
) -> None:
    """Say of each failing test whether your change broke it, or whether it failed before, is flaky, or lacks something.

    Uses no model and no key.
    """
    options.require_folder(path)

    import shlex

    from redstart.app.triage.triage import STEP, TriageRequest
    from redstart.app.triage.triage import triage as triage_tests
    from redstart.app.verify.revisions import RevisionRequest
    from redstart.app.verify.suite_specs import SuiteOptions
    from redstart.cli.progress_display import ask_about_pytest, run_with_progress

    flags = options.build_sandbox_flags(sandbox, sandbox_image, sandbox_cpus, sandbox_memory)
    can_ask = options.can_ask_user(silent=no_input or json)
    settings = load_settings(path, None, flags, can_ask=can_ask)
    command = tuple(shlex.split(test_cmd or settings.tests.command))
    request = TriageRequest(RevisionRequest(base, head), SuiteOptions(command, python=python), junit, log, bisect)
    may_lend = ask_about_pytest if can_ask else None
    result = run_with_progress(
        settings,
        STEP,
        lambda app, report: triage_tests(app, path, request, report=report, may_lend=may_lend),
        unsafe=unsafe_no_sandbox,
    )
    _print(result, json=json, verbose=verbose)
    raise typer.Exit(result.exit_code)


def _print(result: Triage, *, json: bool, verbose: bool) -> None:
    from redstart.cli.triage_text import format_report
    from redstart.cli.verify_text import print_report

    if json:
        echo_json(result.model_dump_json(indent=2))
        return
    print_report(partial(format_report, result, shows_all=verbose))
