"""Show how a run ended: the headline, the diff, where the result is, and what to type next."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from redstart.app.create import write_project
from redstart.app.runs import result_snapshot, write_patch
from redstart.app.standing import part_ids, status_now
from redstart.app.wire import AppContext
from redstart.cli.display import Display
from redstart.core.noun import many
from redstart.core.run import Mode, Result, RunState, Status, Step
from redstart.core.visible import visible, visible_line
from redstart.flow.route import waits_for_a_person, waits_for_errands
from redstart.toolkit.honesty.verdict.shortfall import green_in_words

AROUND = 2
"""Unchanged lines shown before and after each difference."""


def side_by_side(old: str, new: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield each line with its mark: `changed`, `same` or `gap`. Lines that are too long are cut."""
    half = max((width - 3) // 2, 10)
    was, now = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, was, now, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(AROUND)):
        if number:
            yield "gap", "…"
        for tag, start, end, first, last in group:
            for offset in range(max(end - start, last - first)):
                left = was[start + offset] if start + offset < end else ""
                right = now[first + offset] if first + offset < last else ""
                yield ("same" if tag == "equal" else "changed"), f"{_cut(left, half)} │ {_cut(right, half)}".rstrip()


def _cut(text: str, width: int) -> str:
    shown = visible_line(text.expandtabs(4))
    return f"{shown[: width - 1]}…" if len(shown) > width else shown.ljust(width)


HEADLINES = {
    "verified": ("GREEN", "bold green"),
    "already_green": ("GREEN", "bold green"),
    "unproven": ("UNPROVEN", "bold yellow"),
    "unsolved": ("NOT SOLVED", "bold red"),
    "stuck": ("STUCK", "bold red"),
    "capped": ("LIMIT REACHED", "bold yellow"),
    "no_tests": ("NO TESTS", "bold yellow"),
    "environment": ("ENVIRONMENT PROBLEM", "bold yellow"),
    "refused": ("REFUSED", "bold red"),
    "needs_human": ("NEEDS INPUT", "bold yellow"),
    "reported": ("REPORTED", "bold green"),
    "found": ("FINDINGS", "bold red"),
}
MOST_LINES = 60
"""Maximum number of lines of a diff to show."""
_NOISE = ("diff --git ", "index ")
_DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


class EarlyGreen:
    """Announces a verified fix as soon as nothing can change its verdict, before the run saves what it learned.

    A fix with a green verdict is always accepted. A new program can still prove too weakly tested, and an improvement
    can make a metric worse, so those are announced only at their end.
    """

    def __init__(self, house: AppContext, shown: Display) -> None:
        self._house, self._shown = house, shown
        self.announced: set[str] = set()

    def __call__(self, state: RunState, step: Step) -> None:
        """Handle the next step of a run. Called before each step, with the committed state."""
        tested, made = state.now.test, state.now.made
        is_green = (
            state.spec.mode is Mode.fix and not state.spec.errand and tested is not None and tested.verdict.honest_green
        ) and not state.foreign_language
        if step is not Step.remember or not is_green or made is None or tested is None:
            return
        self.announced.add(state.run_id)
        say_headline(self._shown, "verified", green_in_words(tested.verdict.fixed.count))
        diff = self._house.trees.diff(state.spec.base, made).decode(errors="replace")
        say_diff(self._shown, diff, state.run_id)


def say_headline(shown: Display, result: str, reason: str) -> None:
    headline, style = HEADLINES.get(result, (result.replace("_", " ").upper(), "bold"))
    shown.say("")
    shown.say(f"{headline}  {reason}", style, hang=len(headline) + 2)


def say_diff(shown: Display, diff: str, run_id: str) -> None:
    """Show the first lines of a diff, in color if the terminal supports it."""
    lines = [line for line in diff_lines(diff) if not line.startswith(_NOISE)]
    shown.say("")
    say_diff_lines(shown, lines[:MOST_LINES], indent="    ")
    if len(lines) > MOST_LINES:
        shown.say(f"    … {many(len(lines) - MOST_LINES, 'more line')}: redstart show {run_id}", "dim")
    shown.say("")


def diff_lines(diff: str) -> list[str]:
    """Split a diff into lines as git counts them, so that no content of a file can imitate one of our lines."""
    return visible(diff).removesuffix("\n").split("\n")


def say_diff_lines(shown: Display, lines: Sequence[str], indent: str = "") -> None:
    for line in lines:
        style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")
        shown.say(f"{indent}{line}", style, hang=len(indent) + 4)


async def say_ending(
    house: AppContext,
    state: RunState,
    shown: Display,
    *,
    patch: Path | None = None,
    announced: bool = False,
    passing: bool = False,
) -> Path | None:
    """Show how the run ended, its result and what to type next. Write the patch or the project if there is one.

    Return the path of the patch. `patch` is the path to write it to, by default in our data directory. With `announced`
    the headline and the diff are already shown; with `passing` nothing of the run is kept.
    """
    if await status_now(house, state.run_id) is Status.cancelled:
        shown.say(f"run {state.run_id} was cancelled", "bold")
        return None
    if state.status is Status.running or waits_for_errands(state):
        step = state.last.value if state.last else "the start"
        await _say_who_waits(house, state, shown)
        shown.say(f"paused after {step}; resume with: redstart resume {state.run_id}", "bold")
        return await say_kept(house, state.run_id, shown, patch)
    result = state.result.value if state.result else "needs_human"
    announced = announced and state.result is Result.verified
    if not announced:
        say_headline(shown, result, reason_in_words(state))
    if state.status is Status.needs_input:
        _say_proposal(house, state, shown)
        shown.say(f"answer with: redstart resume {state.run_id} --accept, or --reject [--say WHY]", "bold")
    path = None
    if state.spec.task.makes_program:
        await _hand_over_project(house, state, shown)
    elif path := write_patch(house, state, patch):
        if not announced:
            say_diff(shown, path.read_text(errors="replace"), state.run_id)
        if not passing:
            _hand_over_patch(path, state.run_id, shown)
        if state.result is Result.unproven:
            shown.say(f"to accept it as a verified fix: redstart resume {state.run_id} --accept")
    shown.say(cost(state) if passing else f"{cost(state)} · redstart show {state.run_id}", "dim")
    return path


def reason_in_words(state: RunState) -> str:
    """Return why the run ended, as its headline states it."""
    return state.reason.removeprefix("no tests: ")


async def say_kept(house: AppContext, run_id: str, shown: Display, patch: Path | None) -> Path | None:
    """Show the improvements that a run of `improve` has kept so far. Return the path of their patch, if any."""
    state = await house.adapters.store.load(run_id)
    if state.spec.mode is not Mode.improve or result_snapshot(state) is None:
        return None
    path = write_patch(house, state, patch)
    if path is not None:
        shown.say(f"{many(state.work.kept, 'improvement')} kept so far")
        _hand_over_patch(path, run_id, shown)
    return path


async def _say_who_waits(house: AppContext, state: RunState, shown: Display) -> None:
    """Show the child runs that ask a person something, and how to answer them."""
    for run_id in await part_ids(house, state):
        part = await house.adapters.store.load(run_id)
        if waits_for_a_person(part):
            say_headline(shown, "needs_human", f"{part.spec.goal}: {part.reason}")
            _say_proposal(house, part, shown)
            shown.say(
                f"answer with: redstart resume {run_id} --accept, or --reject [--say WHY]; then resume this run", "bold"
            )


def _say_proposal(house: AppContext, state: RunState, shown: Display) -> None:
    """Show the tests that the patch would change, now and as proposed."""
    made = state.now.made
    for path in state.now.apply.proposes if state.now.apply and made else ():
        old, new = (house.trees.read(tree, path) or b"" for tree in (state.base, made or state.base))
        shown.say("")
        shown.say(f"{path}: now, and as proposed", "bold")
        width = shutil.get_terminal_size((100, 24)).columns
        for mark, line in side_by_side(old.decode(errors="replace"), new.decode(errors="replace"), width):
            shown.say(line, "yellow" if mark == "changed" else "dim")


def _hand_over_patch(path: Path, run_id: str, shown: Display) -> None:
    shown.say(f"patch: {path}")
    shown.say(f"apply it with: redstart apply {run_id}")


async def _hand_over_project(house: AppContext, state: RunState, shown: Display) -> None:
    (row,) = await house.adapters.store.runs(prefix=state.run_id, limit=1)
    if write_project(house, state, Path(row.folder)):
        shown.say(f"project: {row.folder}")


def cost(state: RunState) -> str:
    spend = state.spend
    unknown = f" + {many(spend.unpriced, 'call')} of unknown price" if spend.unpriced else ""
    parts = (
        many(state.now.number, "attempt"),
        many(spend.calls, "model call"),
        many(spend.tokens, "token"),
        f"${spend.usd:.3f}{unknown}",
        f"{spend.seconds:.1f} s",
    )
    return " · ".join(parts)
