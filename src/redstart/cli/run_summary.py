"""Show how a run ended: the headline, the diff, where the result is, and what to type next."""

from __future__ import annotations

import difflib
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from redstart.app.create import write_project
from redstart.app.run_status import list_child_ids, load_status
from redstart.app.runs import get_result_snapshot, write_patch
from redstart.app.wire import AppContext
from redstart.cli.display import Display
from redstart.core.frozen import format_count
from redstart.core.run import Mode, Result, RunState, Spend, Status, Step
from redstart.core.safe_text import escape_hidden, escape_line
from redstart.flow.child_runs import make_child_run_id
from redstart.flow.route import can_accept_answer, is_waiting_for_children, is_waiting_for_person
from redstart.toolkit.honesty.verdict.remaining_failures import describe_fix
from redstart.toolkit.honesty.verdict.set_aside import list_set_aside

CONTEXT_LINES = 2
"""Unchanged lines shown before and after each difference."""


def side_by_side(old: str, new: str, width: int) -> Iterator[tuple[str, str]]:
    """Yield each line with its mark: `changed`, `same` or `gap`. Lines that are too long are cut."""
    column_width = max((width - 3) // 2, 10)
    old_lines, new_lines = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(CONTEXT_LINES)):
        if number:
            yield "gap", "…"
        for tag, start, end, new_start, new_end in group:
            for offset in range(max(end - start, new_end - new_start)):
                left = old_lines[start + offset] if start + offset < end else ""
                right = new_lines[new_start + offset] if new_start + offset < new_end else ""
                yield (
                    ("same" if tag == "equal" else "changed"),
                    f"{_cut(left, column_width)} │ {_cut(right, column_width)}".rstrip(),
                )


def _cut(text: str, width: int) -> str:
    escaped = escape_line(text.expandtabs(4))
    return f"{escaped[: width - 1]}…" if len(escaped) > width else escaped.ljust(width)


HEADLINES = {
    "verified": ("GREEN", "bold green"),
    "already_green": ("GREEN", "bold green"),
    "unproven": ("UNPROVEN", "bold yellow"),
    "partial": ("PARTIAL", "bold yellow"),
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

    def __init__(self, app: AppContext, ui: Display) -> None:
        self._app, self._display = app, ui
        self.announced_runs: set[str] = set()

    def __call__(self, state: RunState, step: Step) -> None:
        """Handle the next step of a run. Called before each step, with the committed state."""
        test_result, snapshot = state.now.test, state.now.made
        is_green = (
            state.spec.mode is Mode.fix
            and not state.spec.errand
            and test_result is not None
            and test_result.verdict.is_green
        ) and not (state.foreign_language or list_set_aside(state))
        if step is not Step.remember or not is_green or snapshot is None or test_result is None:
            return
        self.announced_runs.add(state.run_id)
        print_headline(self._display, "verified", describe_fix(test_result.verdict.fixed.count))
        diff = self._app.trees.diff(state.spec.base, snapshot).decode(errors="replace")
        print_diff(self._display, diff, state.run_id)


def print_headline(ui: Display, result: str, reason: str) -> None:
    headline, style = HEADLINES.get(result, (result.replace("_", " ").upper(), "bold"))
    ui.print_line("")
    ui.print_line(f"{headline}  {reason}", style, hang=len(headline) + 2)


def print_diff(ui: Display, diff: str, run_id: str) -> None:
    """Show the first lines of a diff, in color if the terminal supports it."""
    lines = [line for line in diff_lines(diff) if not line.startswith(_NOISE)]
    ui.print_line("")
    print_diff_lines(ui, lines[:MOST_LINES], indent="    ")
    if len(lines) > MOST_LINES:
        ui.print_line(f"    … {format_count(len(lines) - MOST_LINES, 'more line')}: redstart show {run_id}", "dim")
    ui.print_line("")


def diff_lines(diff: str) -> list[str]:
    """Split a diff into lines as git counts them, so that no content of a file can imitate one of our lines."""
    return escape_hidden(diff).removesuffix("\n").split("\n")


def print_diff_lines(ui: Display, lines: Sequence[str], indent: str = "") -> None:
    for line in lines:
        style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), "")
        ui.print_line(f"{indent}{line}", style, hang=len(indent) + 4)


async def print_ending(
    app: AppContext,
    state: RunState,
    ui: Display,
    *,
    patch: Path | None = None,
    is_announced: bool = False,
    is_transient: bool = False,
) -> Path | None:
    """Show how the run ended, its result and what to type next. Write the patch or the project if there is one.

    Return the path of the patch. `patch` is the path to write it to, by default in our data directory. With
    `is_announced` the headline and the diff are already shown; with `is_transient` nothing of the run is kept.
    """
    if await load_status(app, state.run_id) is Status.cancelled:
        ui.print_line(f"run {state.run_id} was cancelled", "bold")
        return None
    if state.status is Status.running or is_waiting_for_children(state):
        step = state.last.value if state.last else "the start"
        await _print_waiting_runs(app, state, ui)
        ui.print_line(f"paused after {step}; resume with: redstart resume {state.run_id}", "bold")
        return await print_kept_improvements(app, state.run_id, ui, patch)
    result = state.result.value if state.result else "needs_human"
    is_announced = is_announced and state.result is Result.verified
    if not is_announced:
        print_headline(ui, result, format_reason(state))
    if state.status is Status.needs_input:
        _print_proposal(app, state, ui)
        await _print_differing_candidates(app, state, ui)
        ui.print_line(f"answer with: redstart resume {state.run_id} --accept, or --reject [--say WHY]", "bold")
    path = None
    if state.spec.task.makes_program:
        await _deliver_project(app, state, ui)
    elif path := write_patch(app, state, patch):
        if not is_announced:
            print_diff(ui, path.read_text(errors="replace"), state.run_id)
        if not is_transient:
            _print_patch_location(path, state.run_id, ui, is_partial=state.result is Result.partial)
        if state.result is Result.partial and can_accept_answer(state):
            ui.print_line(f"to accept it and what is set aside: redstart resume {state.run_id} --accept")
        elif state.result is Result.partial:
            ui.print_line(f"to go on with the tests that still fail: redstart resume {state.run_id} --max-attempts 5")
        if state.result is Result.unproven:
            ui.print_line(f"to accept it as a verified fix: redstart resume {state.run_id} --accept")
    ui.print_line(cost(state) if is_transient else f"{cost(state)} · redstart show {state.run_id}", "dim")
    return path


def format_reason(state: RunState) -> str:
    """Return why the run ended, as its headline states it."""
    return state.reason.removeprefix("no tests: ")


async def print_kept_improvements(app: AppContext, run_id: str, ui: Display, patch: Path | None) -> Path | None:
    """Show the improvements that a run of `improve` has kept so far. Return the path of their patch, if any."""
    state = await app.adapters.store.load(run_id)
    if state.spec.mode is not Mode.improve or get_result_snapshot(state) is None:
        return None
    path = write_patch(app, state, patch)
    if path is not None:
        ui.print_line(f"{format_count(state.work.kept, 'improvement')} kept so far")
        _print_patch_location(path, run_id, ui)
    return path


async def _print_waiting_runs(app: AppContext, state: RunState, ui: Display) -> None:
    """Show the child runs that ask a person something, and how to answer them."""
    for run_id in await list_child_ids(app, state):
        part = await app.adapters.store.load(run_id)
        if is_waiting_for_person(part):
            print_headline(ui, "needs_human", f"{part.spec.goal}: {part.reason}")
            _print_proposal(app, part, ui)
            ui.print_line(
                f"answer with: redstart resume {run_id} --accept, or --reject [--say WHY]; then resume this run", "bold"
            )


async def _print_differing_candidates(app: AppContext, state: RunState, ui: Display) -> None:
    """Show the patches among which a person chooses, the proposed one first."""
    for number in filter(None, (state.work.chosen, *state.work.others)):
        child = await app.adapters.store.load(make_child_run_id(state.run_id, number))
        snapshot = get_result_snapshot(child)
        if snapshot is not None:
            ui.print_line(f"candidate {number}:", "bold")
            print_diff(ui, app.trees.diff(child.base, snapshot).decode(errors="replace"), child.run_id)


def _print_proposal(app: AppContext, state: RunState, ui: Display) -> None:
    """Show the tests that the patch would change, now and as proposed."""
    snapshot = state.now.made
    for path in state.now.apply.proposes if state.now.apply and snapshot else ():
        old, new = (app.trees.read(tree, path) or b"" for tree in (state.base, snapshot or state.base))
        ui.print_line("")
        ui.print_line(f"{path}: now, and as proposed", "bold")
        width = shutil.get_terminal_size((100, 24)).columns
        for mark, line in side_by_side(old.decode(errors="replace"), new.decode(errors="replace"), width):
            ui.print_line(line, "yellow" if mark == "changed" else "dim")


def _print_patch_location(path: Path, run_id: str, ui: Display, *, is_partial: bool = False) -> None:
    ui.print_line(f"patch: {path}")
    ui.print_line(f"apply it with: redstart apply {run_id}{' --partial' if is_partial else ''}")


async def _deliver_project(app: AppContext, state: RunState, ui: Display) -> None:
    (row,) = await app.adapters.store.list_runs(prefix=state.run_id, limit=1)
    if write_project(app, state, Path(row.folder)):
        ui.print_line(f"project: {row.folder}")


def _format_tokens(spend: Spend) -> str:
    if not spend.estimated_tokens:
        return format_count(spend.tokens, "token")
    return f"about {format_count(spend.tokens + spend.estimated_tokens, 'token')} (estimated)"


def cost(state: RunState) -> str:
    spend = state.spend
    unpriced_text = f" + {format_count(spend.unpriced, 'call')} of unknown price" if spend.unpriced else ""
    parts = [
        format_count(state.now.number, "attempt"),
        format_count(spend.calls, "model call"),
        _format_tokens(spend),
        f"${spend.usd:.3f}{unpriced_text}",
        f"{spend.seconds:.1f} s",
    ]
    parts += [format_count(spend.handovers, "hand-over")] if spend.handovers else []
    return " · ".join(parts)
