"""`redstart verify`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import echo, echo_json
from redstart.cli.repo_commands import load_settings

if TYPE_CHECKING:
    from redstart.core.verification import Verification


class RequirementName(StrEnum):
    """Copies the values of `ProofRequirement`: its import is slow, and help must be fast. A test compares them."""

    no_worse = "no-worse"
    proof = "proof"


class GroupingName(StrEnum):
    author = "author"
    agent = "agent"


def verify(
    path: Annotated[Path, typer.Argument(help="Directory of the project.")] = Path(),
    base: options.BaseRef = "",
    head: Annotated[
        str, typer.Option("--head", metavar="REF", help="Verify this branch, tag or commit (default: your files).")
    ] = "",
    patch: Annotated[
        Path | None, typer.Option("--patch", metavar="FILE", help="Verify this patch, applied to HEAD.")
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Verify the staged changes.")] = False,
    require: Annotated[
        RequirementName,
        typer.Option("--require", help="Exit with 0 if nothing got worse, or only if a test proves the change."),
    ] = RequirementName.no_worse,
    level: Annotated[
        options.LevelName | None, typer.Option("--level", help="How thoroughly to verify (default standard).")
    ] = None,
    accept: Annotated[
        list[str] | None,
        typer.Option("--accept", metavar="TEST_ID", help="Accept that this test demands less than before; repeatable."),
    ] = None,
    base_junit: Annotated[
        Path | None,
        typer.Option("--base-junit", metavar="FILE", help="Take the base's results from this JUnit file of a CI job."),
    ] = None,
    max_minutes: Annotated[
        float | None,
        typer.Option("--max-minutes", min=0, help="Stop after N minutes and report what was not checked."),
    ] = None,
    mutants: Annotated[
        int | None,
        typer.Option(
            "--mutants",
            metavar="N",
            min=0,
            max=100,
            help="Try N small changes of the changed lines (default: level).",
        ),
    ] = None,
    test_cmd: options.TestCommand = None,
    junit: options.Junit = "",
    test_files: options.TestFiles = None,
    python: options.Python = None,
    no_input: options.NoInput = False,
    json: options.OneJson = False,
    markdown: Annotated[
        Path | None,
        typer.Option("--markdown", metavar="FILE", help="Write the result for a pull-request comment to this file."),
    ] = None,
    report_junit: Annotated[
        Path | None,
        typer.Option("--report-junit", metavar="FILE", help="Write the result as JUnit XML for a CI system."),
    ] = None,
    attest: Annotated[
        Path | None,
        typer.Option("--attest", metavar="FILE", help="Write the result as an in-toto statement, unsigned."),
    ] = None,
    recheck: Annotated[
        Path | None,
        typer.Option("--recheck", metavar="FILE", help="Repeat the verification of such a statement and compare."),
    ] = None,
    history: Annotated[
        str,
        typer.Option(
            "--history", metavar="PERIOD", help="Verify the changes already merged, for example of 90d or 12w."
        ),
    ] = "",
    by: Annotated[
        GroupingName | None,
        typer.Option("--by", help="With --history, count by author (the default) or by coding agent."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="With --history, also write one HTML page.")
    ] = None,
    verbose: options.ListAllTests = False,
    sandbox: options.SandboxKind = None,
    sandbox_image: options.SandboxImage = None,
    sandbox_cpus: options.SandboxCpus = None,
    sandbox_memory: options.SandboxMemory = None,
    unsafe_no_sandbox: options.Unsafe = False,
) -> None:
    """Verify anybody's change: what its tests prove, and whether something got worse. Uses no model and no key."""
    options.require_folder(path)

    import shlex

    from redstart.app.verify.revisions import RevisionRequest
    from redstart.app.verify.verify import STEP, VerifyRequest
    from redstart.app.verify.verify import verify as verify_change
    from redstart.cli.progress_display import ask_about_pytest, run_with_progress
    from redstart.core.errors import ConfigError
    from redstart.core.run import Level
    from redstart.core.verification import ProofRequirement

    revisions = RevisionRequest(base, head, patch, staged)
    one_change = {
        "--base": base,
        "--patch": patch,
        "--staged": staged,
        "--require": require is not RequirementName.no_worse,
        "--accept": accept,
        "--base-junit": base_junit,
        "--mutants": mutants is not None,
        "--markdown": markdown,
        "--report-junit": report_junit,
        "--attest": attest,
        "--recheck": recheck,
    }
    _refuse_unusable("with", history, one_change)
    _refuse_unusable("without", not history, {"--by": by, "--html": html})
    flags = options.build_sandbox_flags(sandbox, sandbox_image, sandbox_cpus, sandbox_memory)
    can_ask = options.can_ask_user(silent=no_input or json)
    settings = load_settings(path, None, flags, can_ask=can_ask)
    command = tuple(shlex.split(test_cmd or settings.tests.command))
    tests = (*settings.tests.files, *(test_files or ()))
    may_lend = ask_about_pytest if can_ask else None
    if history:
        from redstart.app.verify.history.commits import parse_period
        from redstart.app.verify.history.history import HistoryRequest
        from redstart.app.verify.suite_specs import SuiteOptions
        from redstart.cli.verify_history import report_history

        days, suite = parse_period(history), SuiteOptions(command, junit, python)
        examined_level = Level(level.value) if level else Level.quick
        code = report_history(
            settings,
            path,
            HistoryRequest(days, head, suite, tests, examined_level, max_minutes),
            grouping=by.value if by else GroupingName.author.value,
            json=json,
            html=html,
            verbose=verbose,
            may_lend=may_lend,
            unsafe=unsafe_no_sandbox,
        )
        raise typer.Exit(code)
    request = VerifyRequest(
        revisions,
        ProofRequirement(require.value),
        options.resolve_level(settings.verify, level),
        tuple(accept or ()),
        command,
        junit,
        tests,
        python,
        max_minutes,
        mutants,
        base_junit=base_junit,
    )
    if recheck is not None and base_junit is not None:
        raise ConfigError("--recheck and --base-junit cannot be combined", remedy="a recheck runs all tests itself")
    from redstart.app.verify.attestation import as_statement, list_differences, read_statement, repeat_request

    claimed = read_statement(recheck) if recheck is not None else None
    request = repeat_request(claimed, request) if claimed else request
    result = run_with_progress(
        settings,
        STEP,
        lambda app, report: verify_change(app, path, request, report=report, may_lend=may_lend),
        unsafe=unsafe_no_sandbox,
    )
    _print(result, json=json, verbose=verbose)
    if markdown is not None:
        from redstart.app.verify.markdown import as_markdown

        _write(markdown, as_markdown(result), "--markdown")
    if report_junit is not None:
        from redstart.app.verify.junit import as_junit

        _write(report_junit, as_junit(result), "--report-junit")
    if attest is not None:
        _write(attest, as_statement(result), "--attest")
    if claimed:
        raise typer.Exit(_print_comparison(list_differences(claimed, result), str(recheck)))
    raise typer.Exit(result.exit_code)


def _refuse_unusable(word: str, applies: object, given: Mapping[str, object]) -> None:
    """Raise `ConfigError` if an option is given that has no meaning with (or without) --history."""
    from redstart.core.errors import ConfigError

    names = [name for name, value in given.items() if value]
    if applies and names:
        remedy = f"leave out {', '.join(names)}" if word == "with" else "add a period, for example --history 90d"
        raise ConfigError(f"{names[0]} has no meaning {word} --history", remedy=remedy)


def _print_comparison(differences: list[str], name: str) -> int:
    """Print how the repeated verification differs from the statement. Return the exit code."""
    for difference in differences:
        echo(f"differs: {difference}", err=True)
    echo(f"{name}: {'not confirmed' if differences else 'confirmed, with the same result for each test'}", err=True)
    return 1 if differences else 0


def _print(result: Verification, *, json: bool, verbose: bool) -> None:
    from redstart.cli.verify_text import format_report, print_report

    if json:
        echo_json(result.model_dump_json(indent=2))
        return
    print_report(partial(format_report, result, shows_all=verbose))


def _write(path: Path, text: str, option: str) -> None:
    from redstart.core.errors import ConfigError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror or error}"
        raise ConfigError(problem, remedy=f"choose another file: {option}") from error
