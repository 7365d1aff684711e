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
    from redstart.app.wire import open_house
    from redstart.cli.display import Terminal

    with open_house(configuration.load()) as house:

        async def make() -> Proof:
            state = await house.adapters.store.load(await find_run(house, run, Path.cwd(), cancelled=True))
            return await prove(house, state)

        proof = asyncio.run(make())
    if form is not ShowForm.text:
        echo(as_markdown(proof), nl=False) if form is ShowForm.markdown else echo_json(as_json(proof), nl=False)
        return
    shown = Terminal()
    for line in text_lines(proof):
        shown.say(line.text, hang=line.hang)


def _show(run: str | None, attempt: int | None, *, json: bool) -> None:
    import asyncio
    from json import dumps

    from redstart.app import settings as configuration
    from redstart.app.improve import cycles
    from redstart.app.runs import find_run
    from redstart.app.show import final_diff, reflections_of, spending, state_document, view_attempt
    from redstart.app.standing import load_as_it_stands
    from redstart.app.wire import open_house
    from redstart.core.run import Mode

    with open_house(configuration.load()) as house:

        async def gather() -> tuple[RunState, AttemptView | None, str, list[ModelShare], dict[int, Reflection]]:
            state = await load_as_it_stands(house, await find_run(house, run, Path.cwd(), cancelled=True))
            view = await view_attempt(house, state, attempt) if attempt else None
            thoughts = reflections_of(await house.adapters.store.steps(state.run_id))
            return state, view, final_diff(house, state), await spending(house, state), thoughts

        state, view, diff, shares, thoughts = asyncio.run(gather())
        tried = asyncio.run(cycles(house, state))
    if json:
        document = view.model_dump(mode="json") if view else state_document(state)
        echo_json(dumps(document, indent=2, ensure_ascii=False))
        return
    from redstart.cli.display import Terminal

    shown = Terminal()
    if view is None:
        _print_cycles(shown, tried, "cycle" if state.spec.mode is Mode.improve else "part")
        _print_run(shown, state, diff, shares, thoughts)
    else:
        _print_attempt(shown, view)


def _print_run(
    shown: Terminal, state: RunState, diff: str, shares: Sequence[ModelShare], thoughts: Mapping[int, Reflection]
) -> None:
    from redstart.app.show import reflection_lines
    from redstart.cli.ending import cost, reason_in_words
    from redstart.cli.words import tests_in_words
    from redstart.core.noun import many

    spec = state.spec
    shown.say(f"run {state.run_id}  {spec.mode.value}  {spec.repo}", "bold")
    how = state.result.value if state.result else state.status.value
    reason = reason_in_words(state)
    shown.say(f"{how}: {reason}" if reason else how)
    if state.now.reproduce:
        found = state.now.reproduce
        counts = found.report.counts
        shown.say(f"before: {tests_in_words(counts.red, counts.passed, counts.skipped)}")
        for id_ in found.targets.first[:10]:
            shown.say(f"  {id_}", "dim")
        if found.sure:
            shown.say(f"confidence that the test matches the issue: {found.sure}; {found.sure_why}")
    for coin in state.taught.coins if state.taught else ():
        how = f"shown: when {coin.when}, {coin.advice}" if coin.shown else "withheld to measure its effect"
        shown.say(f"{coin.lesson} was {how}", hang=2)
    for attempt in state.history:
        outcome = (attempt.outcome or attempt.reason).partition("\n")[0].replace("still red: ", "still failing: ", 1)
        shown.say(f"attempt {attempt.number}: {outcome}", hang=2)
        if attempt.turn and attempt.outcome:
            shown.say(f"  {attempt.reason}", "dim")
        for line in reflection_lines(thoughts.get(attempt.number)):
            shown.say(f"  {line}", "dim", hang=4)
    if state.now.decide and state.now.decide.reason != state.reason:
        shown.say(f"attempt {state.now.number}: {state.now.decide.reason}", hang=2)
    for line in reflection_lines(thoughts.get(state.now.number)):
        shown.say(f"  {line}", "dim", hang=4)
    shown.say(cost(state), "dim")
    for share in shares:
        price = "price unknown" if share.usd is None else f"${share.usd:.4f}"
        cached = f", {share.hit_rate:.0%} of the input from the cache" if share.cached_tokens else ""
        tokens = f"{share.input_tokens:,} + {share.output_tokens:,} tokens"
        shown.say(f"  {share.model}: {many(share.answers, 'answer')}, {tokens}{cached}, {price}", "dim", hang=4)
    _print_diff(shown, diff)


def _print_cycles(shown: Terminal, tried: Sequence[CycleView], word: str) -> None:
    """Show the outcome and the reason for each improvement, or for each part of a program."""
    from redstart.core.noun import many

    for cycle in tried:
        outcome, style = ("kept", "green") if cycle.kept else ("running", "") if cycle.going else ("dropped", "red")
        shown.say(f"{word} {cycle.number:>3}  {outcome:<8}{cycle.title}", style, hang=11)
        costs = f"{many(cycle.calls, 'model call')}, ${cycle.usd:.3f}, {cycle.seconds:.1f} s, run {cycle.run}"
        shown.say(f"           {cycle.reason + '; ' if cycle.reason else ''}{costs}", "dim")


def _print_attempt(shown: Terminal, view: AttemptView) -> None:
    from redstart.app.show import reflection_lines

    shown.say(f"run {view.run}, attempt {view.number}: {view.outcome}", "bold", hang=2)
    for step in view.steps:
        shown.say(f"  {step.step:<10}{step.seconds:7.2f} s", "dim")
    if view.why:
        shown.say(f"why: {view.why}", hang=5)
    for line in reflection_lines(view.reflection):
        shown.say(line, hang=2)
    if view.failed_before:
        shown.say(f"shown to the model as failed before: {', '.join(view.failed_before)}", "dim", hang=2)
    _print_diff(shown, view.diff)
    for reject in view.rejects:
        shown.say(f"not applied: {reject}", "red", hang=2)
    for case in view.cases[:20]:
        shown.say("")
        shown.say(f"{case.outcome.value} {case.id}", "red")
        shown.say(f"  {case.message}")
        if case.expected is not None or case.actual is not None:
            shown.say(f"  expected {case.expected}\n  actual   {case.actual}", hang=11)
    if view.output:
        shown.say("")
        shown.say("output of the tests:", "bold")
        shown.say(view.output)


def _print_diff(shown: Terminal, diff: str) -> None:
    from redstart.cli.ending import diff_lines, say_diff_lines

    if diff:
        shown.say("")
        say_diff_lines(shown, diff_lines(diff))
