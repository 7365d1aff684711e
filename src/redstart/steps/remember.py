"""Save what later runs should know: fix cards and lessons, patterns of reached goals, and failed attempts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from redstart.core.chat import Ask, Tier
from redstart.core.learning import FixCard, NewMemories, Plan, Signature
from redstart.core.lesson import LessonPlacement
from redstart.core.noun import clip
from redstart.core.pattern import LONGEST as GOAL
from redstart.core.pattern import SUBTASKS, SolutionPattern
from redstart.core.report import PatchTestResult
from redstart.core.run import Mode, Result, RunState
from redstart.core.tasks import CreateTask
from redstart.core.visible import one_line
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import data
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.failures import failure_record
from redstart.toolkit.learning.lessons import proposed
from redstart.toolkit.learning.shape import TreeFiles, shape
from redstart.toolkit.looking.files import Files, FileText
from redstart.toolkit.looking.symbols import symbols
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.shapes import CardAnswer

ANSWER = 800
"""Maximum tokens of an answer."""


async def remember(run: RunState, ports: Ports) -> NewMemories:
    tested, reproduced = run.now.test, run.now.reproduce
    if tested is None:
        return NewMemories()
    if not tested.verdict.honest_green:
        if reproduced is None or reproduced.report.signature is None:
            return NewMemories()
        diff = ports.blobs.get(run.now.diff).decode(errors="replace") if run.now.diff else ""
        return NewMemories(failure=failure_record(run, tested, diff, _provenance(run)))
    return NewMemories() if run.foreign_language else await VERIFIED[run.spec.mode](run, ports, tested)


async def _of_fix(run: RunState, ports: Ports, tested: PatchTestResult) -> NewMemories:
    signature = run.now.reproduce.report.signature if run.now.reproduce else None
    if signature is None:
        return NewMemories()
    said = await _ask_for_card(run, ports)
    placed = await proposed(run, ports, signature, said.when, said.advice) if said else LessonPlacement()
    card = _card(run, tested, signature, said)
    return NewMemories(card=card, lesson=placed.lesson, lesson_refused=placed.refused)


async def _of_program(run: RunState, ports: Ports, tested: PatchTestResult) -> NewMemories:
    """Save a pattern if the run reached its goal, so that `decide` can only accept it or end the run.

    The run that has the goal saves the pattern of a new program, not the child runs of its parts. Only that run knows
    the goal and the whole plan. It gets here when all parts are merged and tested together, so the pattern is verified
    as a whole. The commit is fenced and keyed by run and attempt, as every other.
    """
    task = run.spec.task_of(CreateTask)
    if task.whole or (task.writes_first_tests and tested.mutants and tested.mutants.too_many_survive):
        return NewMemories()
    made = run.now.made or run.ground
    return NewMemories(pattern=_pattern(run, ports, ports.trees.files(made)))


async def _of_cycle(run: RunState, ports: Ports, tested: PatchTestResult) -> NewMemories:  # noqa: ARG001
    """Save a pattern: each cycle is verified on its own.

    A cycle that fixed tests which failed before its plan did not do what the plan says, and leaves no pattern.
    """
    if run.now.reproduce is None or not run.now.reproduce.tests:
        return NewMemories()
    changes = ports.trees.changes(run.spec.base, run.now.made or run.ground)
    return NewMemories(pattern=_pattern(run, ports, [change.path for change in changes]))


VERIFIED: dict[Mode, Callable[[RunState, Ports, PatchTestResult], Awaitable[NewMemories]]] = {
    Mode.fix: _of_fix,
    Mode.create: _of_program,
    Mode.improve: _of_cycle,
}
"""Builds the memories of a verified run, by mode. An audit verifies nothing."""


def _provenance(run: RunState) -> dict[str, str]:
    model = run.now.patch.model if run.now.patch else ""
    return {"repo": run.spec.repo, "commit": run.spec.base.tree, "run": run.run_id, "model": model}


def _card(run: RunState, tested: PatchTestResult, signature: Signature, said: CardAnswer | None) -> FixCard:
    patch, verdict = run.now.patch, tested.verdict
    why = patch.why if patch else ""
    return FixCard(
        id=f"{run.run_id}-{run.now.number}",
        summary=_words(said.summary if said else why, 300),
        root_cause=_words(said.root_cause if said else why, 300),
        fix=_words(said.fix if said else why, 300),
        verification=f"{verdict.fixed.count} red tests green, {tested.report.counts.passed} passed, none worse",
        error_signature=signature.key,
        family=signature.family,
        files_changed=patch.files if patch else (),
        debug_steps=tuple(_words(step, 200) for step in said.debug_steps[:6]) if said else (),
        outcome="verified",
        provenance=_provenance(run),
        signature=signature,
        test_id=_first_red(run),
        asked=any(attempt.asked for attempt in run.history),
    )


def _words(text: str, limit: int) -> str:
    """Clean the words of a model: people and models read a card, and both must see the same text."""
    return clip(one_line(text), limit)


def _first_red(run: RunState) -> str:
    cases = run.now.reproduce.report.cases if run.now.reproduce else ()
    return cases[0].id if cases else ""


async def _ask_for_card(run: RunState, ports: Ports) -> CardAnswer | None:
    found = run.now.reproduce
    cases = found.report.cases if found else ()
    diff = ports.blobs.get(run.now.diff).decode(errors="replace") if run.now.diff else ""
    messages = fitted(
        ports.note,
        "remember",
        run.spec.asks.room(ANSWER),
        failing=sections.failing(cases[:2], 0),
        fix=section("The fix", data("patch", diff, 6000)),
        tried=sections.tried(run.history, lambda entry: ports.blobs.get(entry).decode(errors="replace")),
    )
    asked = Ask(
        question="remember",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    return (await ask_for(ports.model, asked, CardAnswer)).value


def _pattern(run: RunState, ports: Ports, changed: Sequence[str]) -> SolutionPattern:
    """Build the pattern from these created or changed files."""
    spec, plan, made = run.spec, run.now.plan or Plan(), run.now.made or run.ground
    trees = ports.trees
    files = Files(trees.files(made), partial(trees.read, made), partial(trees.size, made))
    gone = [path for path in changed if path not in files.paths]
    found = shape(changed, TreeFiles(is_test_path, partial(_names, files)), gone)
    return SolutionPattern(
        id=f"{run.run_id}-{run.now.number}",
        goal=clip(spec.goal.strip() or plan.summary, GOAL),
        summary=clip(plan.summary, 600),
        subtasks=tuple(clip(subtask.title, 200) for subtask in plan.subtasks[:SUBTASKS]),
        shape=found.parts,
        left_out=found.left_out,
        mode=spec.mode.value,
        outcome=Result.verified.value,
        provenance=_provenance(run),
    )


def _names(files: Files, path: str) -> list[str]:
    """List the top-level definitions of a file; empty if the file must not be shown."""
    text = files.text(path)
    return [symbol.name for symbol in symbols(text) if "." not in symbol.name] if isinstance(text, FileText) else []
