"""`redstart eval`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import echo, echo_json

if TYPE_CHECKING:
    from redstart.app.settings import Settings
    from redstart.evals.outcome import RunOutcome
    from redstart.evals.task import Task

app = typer.Typer(help="Measure Redstart on tasks with known solutions.", no_args_is_help=True, rich_markup_mode=None)

Source = Annotated[
    str,
    typer.Argument(
        metavar="SET|PATH",
        help="quixbugs, humanevalfix_py, humanevalfix_js, humaneval, mbpp, exercism; a file of tasks, including "
        "SWE-bench format; or a directory of repos.",
    ),
]
Repos = Annotated[Path | None, typer.Option("--repos", help="Directory of clones, for tasks in SWE-bench format.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of an evaluation, as printed by `eval run`.")]
First = Annotated[int | None, typer.Option("--first", min=1, help="Only the first N tasks.")]
Out = Annotated[Path, typer.Option("--out", help="File to write the tasks to, one per line.")]


@app.command("run", short_help="Run Redstart on every task of a set.")
def run(
    source: Source,
    name: Annotated[
        str, typer.Option("--name", help="Name of the evaluation; to continue one, use its name again.")
    ] = "",
    goal: Annotated[str, typer.Option("--goal", help="Goal for repos without a failing test, in plain English.")] = "",
    runs: Annotated[int, typer.Option("--runs", min=1, help="Runs per task and seed.")] = 1,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Number of seeds.")] = 1,
    parallel: Annotated[int, typer.Option("--parallel", min=1, help="Runs in parallel.")] = 1,
    first: First = None,
    repos: Repos = None,
    memory: Annotated[bool, typer.Option("--memory", help="Let runs recall fixes from other tasks.")] = False,
    model: options.Model = None,
    max_attempts: options.MaxAttempts = None,
    max_usd: options.MaxUsd = None,
    max_minutes: options.MaxMinutes = None,
    verify: options.Verify = None,
    looks: options.MaxToolCalls = None,
    candidates: options.Candidates = 1,
    escalate: options.Escalate = False,
    choose: options.ChooseSmallest = False,
    engine: options.Engine = options.EngineName.langgraph,
) -> None:
    """Run Redstart on every task of a set and grade it with hidden tests. An interrupted evaluation can continue."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.runs import CandidateRequest
    from redstart.evals.app import EvaluationRequest, build_plan, open_evaluation, open_lab, without_unverified
    from redstart.evals.metrics import compute_figures
    from redstart.evals.report import forecast_cost, format_row, report_lines

    settings = configuration.load(model)
    tasks = without_unverified(settings, _load_tasks(settings, source, repos, first, goal))
    request = EvaluationRequest(
        source=source,
        name=name,
        runs=runs,
        seeds=seeds,
        limits=options.resolve_limits(settings.limits, max_attempts, max_usd, max_minutes),
        verify=options.resolve_level(settings.verify, verify),
        max_tool_calls=looks,
        engine=engine.value,
        has_memory=memory,
        candidates=CandidateRequest(candidates, escalate, choose),
    )
    plan = build_plan(request, tasks, settings.models.strong)
    planned_count = len(plan.list_run_keys([task.id for task in tasks]))
    finished_count = 0

    def print_progress(row: RunOutcome) -> None:
        nonlocal finished_count
        finished_count += 1
        echo(format_row(row, finished_count, planned_count))

    with open_lab(settings, plan.name) as workspace:
        work = open_evaluation(workspace.app.with_sandbox(), workspace.trials, plan, tasks, print_progress)
        remaining = len(work.list_remaining())
        finished_count = planned_count - remaining
        echo(forecast_cost(plan, work.results.list_rows(), remaining) if remaining else "all runs have finished")
        asyncio.run(work.go(parallel))
        for line in report_lines(plan, compute_figures(work.results.list_rows()), planned_count):
            echo(line)


@app.command("report", short_help="Print the figures of an evaluation.")
def report(
    name: Name,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Also write an HTML page to this file.")
    ] = None,
) -> None:
    """Print the figures of an evaluation with their confidence intervals."""
    from redstart.app import settings as configuration
    from redstart.app.page import write_page
    from redstart.evals.app import make_tenant_name, open_trials
    from redstart.evals.metrics import compute_figures
    from redstart.evals.outcome import Results
    from redstart.evals.page import render_html_page
    from redstart.evals.report import report_lines

    settings = configuration.load()
    with open_trials(settings) as trials:
        results = Results(trials, name)
        rows = results.list_rows()
    evaluation_figures = compute_figures(rows)
    planned_count = len(results.plan.list_run_keys(sorted({row.key.task for row in rows})))
    if json:
        echo_json(evaluation_figures.model_dump_json())
    else:
        for line in report_lines(results.plan, evaluation_figures, planned_count):
            echo(line)
    if html is not None:
        size = write_page(html, render_html_page(results.plan, rows, evaluation_figures, planned_count))
        echo(f"wrote {html} ({size / 1000:.0f} kB)", err=json)
    if not json:
        echo(f"list its runs with: REDSTART_TENANT={make_tenant_name(settings.tenant, name)} redstart runs list")


@app.command("compare", short_help="Compare two evaluations.")
def compare(a: Name, b: Name) -> None:
    """Compare two evaluations on the tasks and seeds that both ran."""
    from redstart.app import settings as configuration
    from redstart.evals.app import open_trials
    from redstart.evals.metrics import compare as compare_rows
    from redstart.evals.outcome import Results
    from redstart.evals.report import format_comparison

    with open_trials(configuration.load()) as trials:
        first_results, second_results = Results(trials, a), Results(trials, b)
        for line in format_comparison(
            first_results.plan, second_results.plan, compare_rows(first_results.list_rows(), second_results.list_rows())
        ):
            echo(line)


@app.command("export-predictions", short_help="Print the patches in SWE-bench format.")
def export_predictions(name: Name) -> None:
    """Print the patches of an evaluation in SWE-bench's predictions format."""
    from redstart.app import settings as configuration
    from redstart.evals.app import format_predictions, open_trials
    from redstart.evals.outcome import Results

    with open_trials(configuration.load()) as trials:
        for line in format_predictions(Results(trials, name)):
            echo(line)


@app.command("check-tasks", short_help="Check that tests fail before the fix and pass after it.")
@app.command("verify", hidden=True)
def check_tasks(
    source: Source,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="How often to run the tests before the fix, and again after it.")
    ] = 3,
    first: First = None,
    repos: Repos = None,
) -> None:
    """Check that each task's tests fail before its reference fix and pass after it. List the tasks that do not."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.wire import AppContext, open_app
    from redstart.core.frozen import format_count
    from redstart.evals.app import verify_all

    settings = configuration.load()
    tasks = _load_tasks(settings, source, repos, first)

    async def go(context: AppContext) -> int:
        usable_count = checked_count = 0
        async for item in verify_all(context.with_sandbox(), tasks, repeats):
            usable_count, checked_count = usable_count + item.ok, checked_count + 1
            if item.ok:
                # Standard output is only for the list of unusable tasks, which is the result of the command.
                echo(f"[{checked_count}/{len(tasks)}] {item.task}: fails, then passes", err=True)
            else:
                echo(f"unusable: {item.task}: {item.why}")
        return usable_count

    with open_app(settings) as context:
        usable_count = asyncio.run(go(context))
    echo(
        f"{usable_count} of {format_count(len(tasks), 'task')} usable: tests "
        f"fail before the reference fix and pass after it, "
        f"in {format_count(repeats, 'run')}"
    )


@app.command("mutate", short_help="Make tasks from a repo's own code.")
def mutate(
    repo: Annotated[Path, typer.Argument(help="A git repo whose tests pass.")],
    out: Out,
    count: Annotated[int, typer.Option("--count", min=1, help="Number of tasks to make.")] = 50,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the random choice of changes.")] = 0,
    python: options.Python = None,
) -> None:
    """Make tasks from a repo's own code: one small change per task, kept if a test fails."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.wire import AppContext, open_app
    from redstart.core.frozen import format_count
    from redstart.evals.mutate import mutate as try_mutants
    from redstart.evals.task import write_tasks

    async def go(context: AppContext) -> tuple[list[Task], int]:
        mutants = [mutant async for mutant in try_mutants(context, repo, count=count, seed=seed, python=python or "")]
        return [item.task for item in mutants if item.task is not None], len(mutants)

    with open_app(configuration.load()) as context:
        tasks, mutant_count = asyncio.run(go(context.with_sandbox()))
    write_tasks(tasks, out)
    echo(f"wrote {format_count(len(tasks), 'task')} from {format_count(mutant_count, 'change')} to {out}")


@app.command("mine", short_help="Make tasks from a git history.")
def mine(
    repo: Annotated[Path, typer.Argument(help="A git repo with its history.")],
    out: Out,
    most: Annotated[int, typer.Option("--most", min=1, help="Maximum number of tasks.")] = 50,
    scan: Annotated[int, typer.Option("--scan", min=1, help="Number of commits to scan, newest first.")] = 2000,
    hide: Annotated[bool, typer.Option("--hide-tests", help="Hide the tests; the commit message is the goal.")] = False,
    candidates: Annotated[Path | None, typer.Option("--candidates", help="File that lists the commits to use.")] = None,
    project: Annotated[str, typer.Option("--project", help="The project's name in that file, as owner/name.")] = "",
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="How often to run the tests before the fix, and again after it.")
    ] = 3,
    python: options.Python = None,
) -> None:
    """Make tasks from past commits of a repo whose tests always fail before the commit and pass after it."""
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.wire import AppContext, open_app
    from redstart.core.frozen import format_count
    from redstart.evals import mine as mining
    from redstart.evals.task import write_tasks

    async def go(context: AppContext) -> tuple[list[Task], int]:
        commits = mining.read_candidates(candidates, project) if candidates else mining.find_candidates(repo, scan)
        tasks: list[Task] = []
        commit_count = 0
        async for item in mining.mine(context, repo, commits, hide_tests=hide, python=python or "", repeats=repeats):
            commit_count += 1
            tasks += [item.task] if item.verified.ok else []
            echo(f"{item.task.id}: {'kept' if item.verified.ok else item.verified.why}")
            if len(tasks) == most:
                break
        return tasks, commit_count

    with open_app(configuration.load()) as context:
        tasks, commit_count = asyncio.run(go(context.with_sandbox()))
    write_tasks(tasks, out)
    echo(f"wrote {format_count(len(tasks), 'task')} from {format_count(commit_count, 'commit')} to {out}")


def _load_tasks(settings: Settings, source: str, repos: Path | None, first: int | None, goal: str = "") -> list[Task]:
    from redstart.evals.sets import load_set

    tasks = load_set(source, data=settings.data, repos=repos)[:first]
    if not goal:
        return tasks
    return [task.model_copy(update={"goal": goal, "shows_red": False}) for task in tasks]
