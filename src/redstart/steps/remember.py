"""Save what later runs should know: fix cards and lessons, patterns of reached goals, and failed attempts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from redstart.core.chat import Ask, Tier
from redstart.core.frozen import clip
from redstart.core.learning import FixCard, NewMemories, Plan, Signature
from redstart.core.lesson import LessonPlacement
from redstart.core.pattern import LONGEST as GOAL
from redstart.core.pattern import SUBTASKS, SolutionPattern
from redstart.core.report import PatchTestResult
from redstart.core.run import Mode, Result, RunState
from redstart.core.safe_text import to_one_line
from redstart.core.tasks import CreateTask
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.honesty.verdict.set_aside import list_set_aside
from redstart.toolkit.languages.registry import is_test_path
from redstart.toolkit.learning.failures import build_failure_record
from redstart.toolkit.learning.lessons import propose_lesson
from redstart.toolkit.learning.solution_shape import TreeFiles, build_shape
from redstart.toolkit.model_tools.symbols import list_symbols
from redstart.toolkit.model_tools.visible_files import Files, FileText
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import CardAnswer
from redstart.toolkit.prompts.ask_model import ask_for
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

ANSWER = 800
"""Maximum tokens of an answer."""


async def remember(run: RunState, ports: Ports) -> NewMemories:
    test_result, reproduced = run.now.test, run.now.reproduce
    if test_result is None:
        return NewMemories()
    if not test_result.verdict.is_green:
        if reproduced is None or reproduced.report.signature is None:
            return NewMemories()
        diff = ports.blobs.get(run.now.diff).decode(errors="replace") if run.now.diff else ""
        return NewMemories(failure=build_failure_record(run, test_result, diff, _build_provenance(run)))
    # The signature may be that of a test that was set aside, which the patch does not fix.
    is_whole = not (run.foreign_language or list_set_aside(run))
    return NewMemories() if not is_whole else await VERIFIED[run.spec.mode](run, ports, test_result)


async def _remember_fix(run: RunState, ports: Ports, test_result: PatchTestResult) -> NewMemories:
    signature = run.now.reproduce.report.signature if run.now.reproduce else None
    if signature is None:
        return NewMemories()
    diff = ports.blobs.get(run.now.diff).decode(errors="replace") if run.now.diff else ""
    answer = await _ask_for_card(run, ports, diff) if run.spec.asks.asks_for_card else None
    placement = await propose_lesson(run, ports, signature, answer.when, answer.advice) if answer else LessonPlacement()
    card = _build_card(run, test_result, signature, answer or _describe_patch(run, diff))
    return NewMemories(card=card, lesson=placement.lesson, lesson_refused=placement.refused)


async def _remember_program(run: RunState, ports: Ports, test_result: PatchTestResult) -> NewMemories:
    """Save a pattern if the run reached its goal, so that `decide` can only accept it or end the run.

    The run that has the goal saves the pattern of a new program, not the child runs of its parts. Only that run knows
    the goal and the whole plan. It gets here when all parts are merged and tested together, so the pattern is verified
    as a whole. The commit is fenced and keyed by run and attempt, as every other.
    """
    task = run.spec.get_task(CreateTask)
    if task.whole or (task.writes_first_tests and test_result.mutants and test_result.mutants.too_many_survive):
        return NewMemories()
    snapshot = run.now.made or run.workspace
    return NewMemories(pattern=_build_pattern(run, ports, ports.trees.list_files(snapshot)))


async def _remember_cycle(run: RunState, ports: Ports, test_result: PatchTestResult) -> NewMemories:  # noqa: ARG001
    """Save a pattern: each cycle is verified on its own.

    A cycle that fixed tests which failed before its plan did not do what the plan says, and leaves no pattern.
    """
    if run.now.reproduce is None or not run.now.reproduce.tests:
        return NewMemories()
    changes = ports.trees.list_changes(run.spec.base, run.now.made or run.workspace)
    return NewMemories(pattern=_build_pattern(run, ports, [change.path for change in changes]))


VERIFIED: dict[Mode, Callable[[RunState, Ports, PatchTestResult], Awaitable[NewMemories]]] = {
    Mode.fix: _remember_fix,
    Mode.create: _remember_program,
    Mode.improve: _remember_cycle,
}
"""Builds the memories of a verified run, by mode. An audit verifies nothing."""


def _build_provenance(run: RunState) -> dict[str, str]:
    model = run.now.patch.model if run.now.patch else ""
    return {"repo": run.spec.repo, "commit": run.spec.base.tree, "run": run.run_id, "model": model}


def _build_card(run: RunState, test_result: PatchTestResult, signature: Signature, answer: CardAnswer) -> FixCard:
    patch, verdict = run.now.patch, test_result.verdict
    return FixCard(
        id=f"{run.run_id}-{run.now.number}",
        summary=_clean_text(answer.summary, 300),
        root_cause=_clean_text(answer.root_cause, 300),
        fix=_clean_text(answer.fix, 300),
        verification=f"{verdict.fixed.count} red tests green, {test_result.report.counts.passed} passed, none worse",
        error_signature=signature.key,
        family=signature.family,
        files_changed=patch.files if patch else (),
        debug_steps=tuple(_clean_text(step, 200) for step in answer.debug_steps[:6]),
        outcome="verified",
        provenance=_build_provenance(run),
        signature=signature,
        test_id=_get_first_target(run),
        asked=any(attempt.asked for attempt in run.history),
    )


def _describe_patch(run: RunState, diff: str) -> CardAnswer:
    """Describe a fix by the reason that its author gave, else by the lines that it changes."""
    patch = run.now.patch
    reason = patch.why if patch else ""
    lines = [f"{line[0]} {line[1:].strip()}" for line in diff.splitlines() if _is_changed_line(line)]
    files = ", ".join(patch.files) if patch else ""
    return CardAnswer(summary=reason or f"changes {files}", root_cause=reason, fix=reason or "; ".join(lines))


def _is_changed_line(line: str) -> bool:
    return line.startswith(("+", "-")) and not line.startswith(("+++ ", "--- ")) and bool(line[1:].strip())


def _clean_text(text: str, limit: int) -> str:
    """Clean the words of a model: people and models read a card, and both must see the same text."""
    return clip(to_one_line(text), limit)


def _get_first_target(run: RunState) -> str:
    cases = run.now.reproduce.report.cases if run.now.reproduce else ()
    return cases[0].id if cases else ""


async def _ask_for_card(run: RunState, ports: Ports, diff: str) -> CardAnswer | None:
    reproduction = run.now.reproduce
    cases = reproduction.report.cases if reproduction else ()
    messages = fit_messages(
        ports.note,
        "remember",
        run.spec.asks.compute_question_tokens(ANSWER),
        failing=sections.build_failing_section(cases[:2], 0),
        fix=format_section("The fix", wrap_untrusted("patch", diff, 6000)),
        tried=sections.build_tried_section(run.history, lambda entry: ports.blobs.get(entry).decode(errors="replace")),
    )
    request = Ask(
        question="remember",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    return (await ask_for(ports.model, request, CardAnswer)).value


def _build_pattern(run: RunState, ports: Ports, changed: Sequence[str]) -> SolutionPattern:
    """Build the pattern from these created or changed files."""
    spec, plan, snapshot = run.spec, run.now.plan or Plan(), run.now.made or run.workspace
    trees = ports.trees
    files = Files(trees.list_files(snapshot), partial(trees.read, snapshot), partial(trees.get_size, snapshot))
    deleted = [path for path in changed if path not in files.paths]
    program_shape = build_shape(changed, TreeFiles(is_test_path, partial(_list_definitions, files)), deleted)
    return SolutionPattern(
        id=f"{run.run_id}-{run.now.number}",
        goal=clip(spec.goal.strip() or plan.summary, GOAL),
        summary=clip(plan.summary, 600),
        subtasks=tuple(clip(subtask.title, 200) for subtask in plan.subtasks[:SUBTASKS]),
        shape=program_shape.parts,
        left_out=program_shape.left_out,
        mode=spec.mode.value,
        outcome=Result.verified.value,
        provenance=_build_provenance(run),
    )


def _list_definitions(files: Files, path: str) -> list[str]:
    """List the top-level definitions of a file; empty if the file must not be shown."""
    text = files.read_text(path)
    return (
        [symbol.name for symbol in list_symbols(text) if "." not in symbol.name] if isinstance(text, FileText) else []
    )
