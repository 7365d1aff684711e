"""Let the model work on a copy of the project, in one conversation that the attempts of a run share."""

from __future__ import annotations

import hashlib
from functools import partial

from redstart.core.change import Patch, PatchProblem
from redstart.core.chat import AnswerFault, Ask, Conversation, Message, Role, Tier
from redstart.core.frozen import clip
from redstart.core.run import AttemptSummary, RunState
from redstart.ports.bundle import Ports
from redstart.steps.patch.failing_tests import build_broken_section, build_failing_section
from redstart.steps.patch.project_sections import build_code_section, build_project_sections
from redstart.steps.patch.single import FREELY
from redstart.steps.patch.workbench import ProjectCopy
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.honesty.verdict.baseline import list_failing_cases, load_baseline_cases, load_targets
from redstart.toolkit.honesty.verdict.set_aside import with_set_aside
from redstart.toolkit.learning.failures import KnownOfFailure, recall_for_attempt
from redstart.toolkit.model_tools.session import SessionEnd, work
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.conversation_window import shorten_conversation
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

ANSWER = 8192
"""Maximum tokens of one answer."""

_UNCHANGED = "the session ended without a change"


async def patch_in_session(run: RunState, ports: Ports) -> Patch:
    """Return what the model submits, or the copy as it stands when no tool call or budget is left."""
    recalled = await recall_for_attempt(run, ports)
    messages = await _open_conversation(run, ports, recalled)
    project_copy = ProjectCopy(run, ports, load_targets(run, ports.blobs))
    asks = run.spec.asks
    request = Ask(
        question="patch",
        tier=Tier.fast if asks.fast else Tier.strong,
        messages=messages,
        max_tokens=asks.answer(ANSWER),
        temperature=FREELY if run.turn is not None else asks.first_temperature,
        stuck=run.turn is not None and not asks.fast,
    )
    end = await work(
        ports.model,
        request,
        project_copy,
        asks.session_calls,
        shorten=partial(shorten_conversation, ports.note, asks.compute_question_tokens(ANSWER)),
        note=lambda tool_call, result: ports.note(look=tool_call, served=result),
    )
    patch = _build_patch(run, ports, project_copy, end)
    if claim := project_copy.claim:
        targets = load_targets(run, ports.blobs)
        patch = with_set_aside(patch, claim.ids, claim.reason, claim.ignored, targets, ports.blobs)
    return patch.model_copy(
        update={
            "recalled": tuple(fix.card.id for fix in recalled.fixes),
            "failed_before": tuple(failure.record.id for failure in recalled.failures),
        }
    )


def _build_patch(run: RunState, ports: Ports, project_copy: ProjectCopy, end: SessionEnd) -> Patch:
    conversation = Conversation(messages=end.messages)
    patch = Patch(
        answer=ports.blobs.put(end.answer.text.encode()),
        looks=end.tool_call_count,
        model=end.answer.model,
        conversation=ports.blobs.put(conversation.model_dump_json().encode()),
    )
    # A copy that was not submitted is tested too if it was changed: testing costs no tokens.
    if not project_copy.has_changed or project_copy.snapshot.tree == run.workspace.tree:
        if end.answer.fault is AnswerFault.budget:
            fault = "the model was not asked, or not until it answered: this call is over budget"
            return patch.model_copy(update={"problem": PatchProblem.over_budget, "fault": fault})
        return patch.model_copy(update={"fault": _UNCHANGED})
    tree = project_copy.snapshot
    changes = ports.trees.list_changes(run.base, tree)
    return patch.model_copy(
        update={
            "tree": tree,
            "files": tuple(clip(change.path, 200) for change in changes[:20]),
            "fingerprint": hashlib.sha256(f"tree\x1f{tree.tree}".encode()).hexdigest()[:32],
            "why": project_copy.why,
            "test_change": project_copy.test_change,
        }
    )


async def _open_conversation(run: RunState, ports: Ports, recalled: KnownOfFailure) -> tuple[Message, ...]:
    """Go on with the last attempt's conversation, or begin a new one."""
    person_messages = await ports.person.read_messages()
    if run.conversation and run.history:
        earlier = Conversation.model_validate_json(ports.blobs.get(run.conversation)).messages
        return (*earlier, Message(role=Role.user, text=_describe_last_attempt(run, ports, person_messages)))

    def read(path: str) -> bytes | None:
        return ports.trees.read(run.workspace, path)

    cases = list_failing_cases(run, ports.blobs)
    return fit_messages(
        ports.note,
        "session/create" if run.spec.task.makes_program else "session/patch",
        run.spec.asks.compute_question_tokens(ANSWER) // 2,
        goal=sections.build_goal_section(run.spec.goal, run.spec.program_goal),
        hint=sections.build_hint_section(run.spec.hint, person_messages),
        **build_project_sections(run, read),
        plan=sections.plan(run.now.plan),
        failing=build_failing_section(run, ports, cases, run.now.retrieve),
        code=build_code_section(run, read),
        findings=sections.build_findings_section(run.now.audit),
        lessons=sections.build_fixes_section(recalled.fixes),
        advice=sections.build_lessons_section(run.taught),
        failed=sections.build_failed_before_section(recalled.failures, run.spec.repo),
        tried=sections.build_tried_section(run.history, lambda name: ports.blobs.get(name).decode(errors="replace")),
        ask=format_section(
            "Now", sections.format_advice(run.turn), f"At most {run.spec.asks.session_calls} tool calls are possible."
        ),
    )


def _describe_last_attempt(run: RunState, ports: Ports, person_messages: tuple[str, ...]) -> str:
    """Tell the model what became of the copy that it submitted, and which code it goes on from."""
    last = run.history[-1]
    failing = list_failing_cases(run, ports.blobs, last.report) if last.report else []
    baseline_red = {case.id for case in load_baseline_cases(run, ports.blobs) if case.is_red}
    broken = [case for case in failing if case.id not in baseline_red]
    still_red = [case for case in failing if case.id in baseline_red]
    parts = [
        sections.build_hint_section("", person_messages),
        format_section("What became of it", wrap_untrusted("outcome", last.outcome or last.reason, 4000)),
        build_failing_section(run, ports, still_red, None),
        build_broken_section(run, ports, broken),
        format_section("Your copy now", _describe_copy(run, last)),
    ]
    return "\n\n".join(part for part in parts if part)


def _describe_copy(run: RunState, last: AttemptSummary) -> str:
    if run.kept_attempt is last:
        return "Your edits stay: go on from them."
    is_new = run.spec.task.makes_program
    if run.draft is not None:
        number = run.kept_attempt.number if run.kept_attempt else 1
        kept = f"the edits of attempt {number}" if is_new else f"the edits of attempt {number}, which fixed some tests"
        return f"Your last edits were taken back. The copy holds {kept}."
    original = "holds no program again" if is_new else "is the original code again"
    return f"Your edits were taken back: the copy {original}. Make those that you still want once more."
