"""Ask why an attempt failed if the run's policy says so; otherwise note what failed."""

from __future__ import annotations

from redstart.core.chat import Ask, Tier
from redstart.core.frozen import clip
from redstart.core.learning import Reflection, ReflectionPolicy
from redstart.core.report import Report
from redstart.core.run import Effort, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import ReflectionAnswer
from redstart.toolkit.prompts.ask_model import ask_for
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.sections import build_attempt_section

ANSWER = 800
"""Maximum tokens of an answer."""
FIRST_AUTO_ATTEMPT = 2
"""The failed attempt from which `auto` asks."""


async def reflect(run: RunState, ports: Ports) -> Reflection:
    """Reflect on the attempt. If no model is asked, the next patch's answer explains the failure, which saves a
    call."""
    report = run.now.test.report if run.now.test else None
    noted = Reflection(what_failed=_summarize_failures(report) if report else "")
    if report is None or not should_ask_model(run):
        return noted

    def read_blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    messages = fit_messages(
        ports.note,
        "reflect",
        run.spec.asks.compute_question_tokens(ANSWER),
        goal=sections.build_goal_section(run.spec.goal, run.spec.program_goal),
        code=sections.build_code_section(run.now.retrieve, lambda path: ports.trees.read(run.workspace, path)),
        earlier=sections.build_tried_section(run.history, read_blob),
        tried=build_attempt_section(
            run.now, read_blob(run.now.apply.diff) if run.now.apply and run.now.apply.diff else ""
        ),
        failing=sections.build_failing_section(report.cases, report.counts.red),
    )
    request = Ask(
        question="reflect",
        tier=Tier.strong,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    answer = (await ask_for(ports.model, request, ReflectionAnswer)).value
    if answer is None:
        return noted
    return Reflection(
        root_cause=clip(answer.root_cause, 400),
        what_failed=clip(answer.what_failed, 400),
        try_next=clip(answer.try_next, 400),
    )


def should_ask_model(run: RunState) -> bool:
    """Return whether the run's policy asks a model after this attempt."""
    if run.spec.effort is Effort.full or run.spec.reflect is ReflectionPolicy.always:
        return True
    return run.spec.reflect is ReflectionPolicy.auto and run.tries >= FIRST_AUTO_ATTEMPT


def _summarize_failures(report: Report) -> str:
    return clip("; ".join(f"{case.id}: {case.message}" for case in report.cases[:2]) or report.fault, 400)
