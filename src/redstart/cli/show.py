"""`redstart show`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from redstart.cli import options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from redstart.app.improve import CycleView
    from redstart.app.show import AttemptView
    from redstart.core.run import RunState
    from redstart.ports.model.spending import Share


class Form(StrEnum):
    text = "text"
    markdown = "markdown"
    json = "json"


def show(
    run: options.RunId = None,
    attempt: Annotated[int | None, typer.Option("--attempt", min=1, help="All about one attempt.")] = None,
    proof: Annotated[bool, typer.Option("--proof", help="The evidence that its patch is a fix, for a review.")] = False,
    form: Annotated[Form | None, typer.Option("--format", help="Of the proof (default text).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead.")] = False,
) -> None:
    """Show what a run did: its attempts, their diffs, test results and timing; or the proof of its patch."""
    if proof:
        if attempt is not None:
            raise typer.BadParameter("a proof is about a whole run: leave out --attempt or --proof")
        typer.echo(_proof(run, Form.json if json else form or Form.text), nl=False)
        return
    if form is not None:
        raise typer.BadParameter("--format is for --proof")
    _show(run, attempt, json=json)


def _proof(run: str | None, form: Form) -> str:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.proof import prove
    from redstart.app.proof_text import as_json, as_markdown, as_text
    from redstart.app.runs import find_run
    from redstart.app.wire import open_house

    with open_house(configuration.load()) as house:

        async def make() -> str:
            state = await house.adapters.store.load(await find_run(house, run, Path.cwd()))
            shown = {Form.text: as_text, Form.markdown: as_markdown, Form.json: as_json}[form]
            return shown(await prove(house, state))

        return asyncio.run(make())


def _show(run: str | None, attempt: int | None, *, json: bool) -> None:
    import asyncio

    from redstart.app import settings as configuration
    from redstart.app.improve import cycles
    from redstart.app.runs import find_run
    from redstart.app.show import final_diff, spending, view_attempt
    from redstart.app.wire import open_house
    from redstart.core.run import Mode

    with open_house(configuration.load()) as house:

        async def gather() -> tuple[RunState, AttemptView | None, str, list[Share]]:
            state = await house.adapters.store.load(await find_run(house, run, Path.cwd()))
            view = await view_attempt(house, state, attempt) if attempt else None
            return state, view, final_diff(house, state), await spending(house, state)

        state, view, diff, shares = asyncio.run(gather())
        tried = asyncio.run(cycles(house, state))
    if json:
        typer.echo((view or state).model_dump_json(indent=2))
        return
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    if view is None:
        _print_cycles(tried, "cycle" if state.spec.mode is Mode.improve else "part")
        _print_run(console, state, diff, shares)
    else:
        _print_attempt(console, view)


def _print_run(console: Console, state: RunState, diff: str, shares: Sequence[Share]) -> None:
    from rich.text import Text

    from redstart.cli.session import cost

    spec = state.spec
    console.print(Text(f"run {state.run_id}  {spec.mode.value}  {spec.repo}", style="bold"))
    ended = f"{state.result.value}: {state.reason}" if state.result else "not ended"
    console.print(Text(ended))
    if state.now.reproduce:
        found = state.now.reproduce
        console.print(Text(f"at the start: {found.report.counts.red} red, {found.report.counts.passed} green"))
        for id_ in found.targets.first[:10]:
            console.print(Text(f"  {id_}", style="dim"))
        if found.sure:
            console.print(Text(f"that this test is what was meant: {found.sure} certainty; {found.sure_why}"))
    for coin in state.taught.coins if state.taught else ():
        told = f"shown: when {coin.when}, {coin.advice}" if coin.shown else "withheld to measure what it is worth"
        console.print(Text(f"{coin.lesson} was {told}"))
    for one in state.history:
        console.print(Text(f"attempt {one.number}: {one.outcome.splitlines()[0] if one.outcome else one.reason}"))
        if one.turn and one.outcome:
            console.print(Text(f"  {one.reason}", style="dim"))
    if state.now.decide:
        console.print(Text(f"attempt {state.now.number}: {state.now.decide.reason}"))
    console.print(Text(cost(state), style="dim"))
    for share in shares:
        price = "price unknown" if share.usd is None else f"${share.usd:.4f}"
        cached = f", {share.hit_rate:.0%} of the input from the cache" if share.cached_tokens else ""
        used = f"{share.answers} answers, {share.input_tokens:,} + {share.output_tokens:,} tokens{cached}, {price}"
        console.print(Text(f"  {share.model}: {used}", style="dim"))
    _print_diff(console, diff)


def _print_cycles(tried: Sequence[CycleView], word: str) -> None:
    """What was done and why, one line or two for each improvement, or for each part of a program."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for one in tried:
        came_to, style = ("kept", "green") if one.kept else ("at work", "") if one.going else ("dropped", "red")
        console.print(Text(f"{word} {one.number:>3}  {came_to:<8}", style=style).append(f"{one.title}", style=""))
        costs = f"{one.calls} model calls, ${one.usd:.3f}, {one.seconds:.1f} s, run {one.run}"
        console.print(Text(f"           {one.reason + '; ' if one.reason else ''}{costs}", style="dim"))


def _print_attempt(console: Console, view: AttemptView) -> None:
    from rich.text import Text

    console.print(Text(f"run {view.run}, attempt {view.number}: {view.outcome}", style="bold"))
    for step in view.steps:
        console.print(Text(f"  {step.step:<10}{step.seconds:7.2f} s", style="dim"))
    if view.why:
        console.print(Text(f"why: {view.why}"))
    _print_diff(console, view.diff)
    for reject in view.rejects:
        console.print(Text(f"not applied: {reject}", style="red"))
    for case in view.cases[:20]:
        console.print(Text(f"\n{case.outcome.value} {case.id}", style="red"))
        console.print(Text(f"  {case.message}"))
        if case.expected is not None or case.actual is not None:
            console.print(Text(f"  expected {case.expected}\n  actual   {case.actual}"))
    if view.output:
        console.print(Text("\noutput of the tests:", style="bold"))
        console.print(Text(view.output))


def _print_diff(console: Console, diff: str) -> None:
    from rich.syntax import Syntax

    if diff:
        console.print()
        console.print(Syntax(diff, "diff", theme="ansi_light", background_color="default"))
