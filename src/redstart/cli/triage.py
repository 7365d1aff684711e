"""`redstart triage`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import create_console, echo_json, print_styled
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.core.triage import Triage


def triage(
    path: Annotated[Path, typer.Argument(help="Directory of the project.")] = Path(),
    base: Annotated[
        str,
        typer.Option(
            "--base",
            metavar="REF",
            help="Branch, tag or commit to compare with (default: the main branch).",
        ),
    ] = "",
    head: Annotated[
        str, typer.Option("--head", metavar="REF", help="Look at this branch, tag or commit (default: your files).")
    ] = "",
    test_cmd: options.TestCommand = None,
    python: options.Python = None,
    no_input: options.NoInput = False,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="List every test.")] = False,
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
    request = TriageRequest(RevisionRequest(base, head), SuiteOptions(command, python=python))
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

    if json:
        echo_json(result.model_dump_json(indent=2))
        return
    console = create_console()
    for line in format_report(result, console.width if console.is_terminal else None, shows_all=verbose):
        print_styled(console, line.text, line.style)
