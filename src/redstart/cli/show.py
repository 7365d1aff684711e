"""`redstart show`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options
from redstart.cli.output import echo, echo_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from redstart.app.improve import CycleView
    from redstart.app.proof.schema import Proof
    from redstart.app.show import AttemptView
    from redstart.cli.display import Terminal
    from redstart.core.learning import Reflection
    from redstart.core.run import RunState
    from redstart.ports.model.prices import ModelShare


class ShowForm(StrEnum):
    text = "text"
    markdown = "markdown"
    json = "json"


def show(
    run: options.RunId = None,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="Show one attempt in detail.")] = None,
    proof: Annotated[bool, typer.Option("--proof", help="Show the evidence for its patch.")] = False,
    form: Annotated[ShowForm | None, typer.Option("--format", help="Format of the proof (default text).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show what a run did: its attempts, diffs, test results and timing. With --proof, show the proof of its patch."""
    if proof:
        if attempt is not None:
            raise typer.BadParameter("a proof covers a whole run; leave out --attempt or --proof")
        _print_proof(run, ShowForm.json if json else form or ShowForm.text)
        return
    if form is not None:
        raise typer.BadParameter("--format needs --proof")
    _show(run, attempt, json=json)


def _print_proof(run: str | None, form: ShowForm) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.proof.evidence import prove
    from redstart.app.proof.text import as_json, as_markdown, text_lines
    from redstart.app.runs import find_run
    from redstart.app.wire import open_app
    from redstart.cli.display import Terminal

    with open_app(configuration.load()) as app:

        async def make() -> Proof:
            state = await app.adapters.store.load(await find_run(app, run, Path.cwd(), include_cancelled=True))
            return await prove(app, state)

        proof = asyncio.run(make())
    if form is not ShowForm.text:
        echo(as_markdown(proof), nl=False) if form is ShowForm.markdown else echo_json(as_json(proof), nl=False)
        return
    ui = Terminal()
    for line in text_lines(proof):
        ui.print_line(line.text, hang=line.hang)


def _show(run: str | None, attempt: int | None, *, json: bool) -> None:
    import asyncio
    from json import dumps

    from redstart.app import settings as configuration
    from redstart.app.improve import list_cycles
    from redstart.app.run_status import load_as_it_stands
    from redstart.app.runs import find_run
    from redstart.app.show import (
        build_state_document,
        collect_reflections,
        load_attempt_view,
        load_final_diff,
        summarize_spending,
    )
    from redstart.app.wire import open_app
    from redstart.core.run import Mode

    with open_app(configuration.load()) as app:

        async def gather() -> tuple[RunState, AttemptView | None, str, list[ModelShare], dict[int, Reflection]]:
            state = await load_as_it_stands(app, await find_run(app, run, Path.cwd(), include_cancelled=True))
            view = await load_attempt_view(app, state, attempt) if attempt else None
            reflections = collect_reflections(await app.adapters.store.list_steps(state.run_id))
            return state, view, load_final_diff(app, state), await summarize_spending(app, state), reflections

        state, view, diff, shares, reflections = asyncio.run(gather())
        cycle_views = asyncio.run(list_cycles(app, state))
    if json:
        document = view.model_dump(mode="json") if view else build_state_document(state)
        echo_json(dumps(document, indent=2, ensure_ascii=False))
        return
    from redstart.cli.display import Terminal

    ui = Terminal()
    if view is None:
        labels = {Mode.improve: "cycle", Mode.fix: "candidate"}
        _print_cycles(ui, cycle_views, labels.get(state.spec.mode, "part"))
        _print_run(ui, state, diff, shares, reflections)
    else:
        _print_attempt(ui, view)


def _print_run(
    ui: Terminal, state: RunState, diff: str, shares: Sequence[ModelShare], reflections: Mapping[int, Reflection]
) -> None:
    from redstart.app.show import reflection_lines
    from redstart.cli.event_text import describe_tests
    from redstart.cli.run_summary import cost, format_reason
    from redstart.core.frozen import format_count

    spec = state.spec
    ui.print_line(f"run {state.run_id}  {spec.mode.value}  {spec.repo}", "bold")
    status_text = state.result.value if state.result else state.status.value
    reason = format_reason(state)
    ui.print_line(f"{status_text}: {reason}" if reason else status_text)
    if state.now.reproduce:
        reproduction = state.now.reproduce
        counts = reproduction.report.counts
        ui.print_line(f"before: {describe_tests(counts.red, counts.passed, counts.skipped)}")
        for id_ in reproduction.targets.first[:10]:
            ui.print_line(f"  {id_}", "dim")
        if reproduction.sure:
            ui.print_line(f"confidence that the test matches the issue: {reproduction.sure}; {reproduction.sure_why}")
    for coin in state.taught.coins if state.taught else ():
        status_text = f"shown: when {coin.when}, {coin.advice}" if coin.shown else "withheld to measure its effect"
        ui.print_line(f"{coin.lesson} was {status_text}", hang=2)
    for attempt in state.history:
        outcome = (attempt.outcome or attempt.reason).partition("\n")[0].replace("still red: ", "still failing: ", 1)
        ui.print_line(f"attempt {attempt.number}: {outcome}", hang=2)
        if attempt.turn and attempt.outcome:
            ui.print_line(f"  {attempt.reason}", "dim")
        for line in reflection_lines(reflections.get(attempt.number)):
            ui.print_line(f"  {line}", "dim", hang=4)
    if state.now.decide and state.now.decide.reason != state.reason:
        ui.print_line(f"attempt {state.now.number}: {state.now.decide.reason}", hang=2)
    for line in reflection_lines(reflections.get(state.now.number)):
        ui.print_line(f"  {line}", "dim", hang=4)
    ui.print_line(cost(state), "dim")
    for share in shares:
        price = "price unknown" if share.usd is None else f"${share.usd:.4f}"
        cache_text = f", {share.hit_rate:.0%} of the input from the cache" if share.cached_tokens else ""
        tokens = f"{share.input_tokens:,} + {share.output_tokens:,} tokens"
        ui.print_line(
            f"  {share.model}: {format_count(share.answers, 'answer')}, {tokens}{cache_text}, {price}", "dim", hang=4
        )
    _print_diff(ui, diff)


def _print_cycles(ui: Terminal, cycle_views: Sequence[CycleView], label: str) -> None:
    """Show the outcome and the reason for each improvement, or for each part of a program."""
    from redstart.core.frozen import format_count

    for cycle in cycle_views:
        outcome, style = ("kept", "green") if cycle.kept else ("running", "") if cycle.going else ("dropped", "red")
        ui.print_line(f"{label} {cycle.number:>3}  {outcome:<8}{cycle.title}", style, hang=11)
        costs = f"{format_count(cycle.calls, 'model call')}, ${cycle.usd:.3f}, {cycle.seconds:.1f} s, run {cycle.run}"
        ui.print_line(f"           {cycle.reason + '; ' if cycle.reason else ''}{costs}", "dim")


def _print_attempt(ui: Terminal, view: AttemptView) -> None:
    from redstart.app.show import reflection_lines

    ui.print_line(f"run {view.run}, attempt {view.number}: {view.outcome}", "bold", hang=2)
    for step in view.steps:
        ui.print_line(f"  {step.step:<10}{step.seconds:7.2f} s", "dim")
    if view.why:
        ui.print_line(f"why: {view.why}", hang=5)
    for line in reflection_lines(view.reflection):
        ui.print_line(line, hang=2)
    if view.failed_before:
        ui.print_line(f"shown to the model as failed before: {', '.join(view.failed_before)}", "dim", hang=2)
    _print_diff(ui, view.diff)
    for reject in view.rejects:
        ui.print_line(f"not applied: {reject}", "red", hang=2)
    for case in view.cases[:20]:
        ui.print_line("")
        ui.print_line(f"{case.outcome.value} {case.id}", "red")
        ui.print_line(f"  {case.message}")
        if case.expected is not None or case.actual is not None:
            ui.print_line(f"  expected {case.expected}\n  actual   {case.actual}", hang=11)
    if view.output:
        ui.print_line("")
        ui.print_line("output of the tests:", "bold")
        ui.print_line(view.output)


def _print_diff(ui: Terminal, diff: str) -> None:
    from redstart.cli.run_summary import diff_lines, print_diff_lines

    if diff:
        ui.print_line("")
        print_diff_lines(ui, diff_lines(diff))
