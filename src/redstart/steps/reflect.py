"""Ask why an attempt failed if the run's policy says so; otherwise note what failed."""

from __future__ import annotations

from redstart.core.chat import Ask, Tier
from redstart.core.learning import Reflection, ReflectionPolicy
from redstart.core.noun import clip
from redstart.core.report import Report
from redstart.core.run import Effort, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.sections import this_attempt
from redstart.toolkit.prompts.shapes import ReflectionAnswer

ANSWER = 800
"""Maximum tokens of an answer."""
SECOND = 2
"""The failed attempt from which `auto` asks."""


async def reflect(run: RunState, ports: Ports) -> Reflection:
    """Reflect on the attempt. If no model is asked, the next patch's answer explains the failure, which saves a
    call."""
    report = run.now.test.report if run.now.test else None
    noted = Reflection(what_failed=_what_failed(report) if report else "")
    if report is None or not asks_model(run):
        return noted

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    messages = fitted(
        ports.note,
        "reflect",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal, run.spec.whole),
        code=sections.code(run.now.retrieve, lambda path: ports.trees.read(run.ground, path)),
        earlier=sections.tried(run.history, blob),
        tried=this_attempt(run.now, blob(run.now.apply.diff) if run.now.apply and run.now.apply.diff else ""),
        failing=sections.failing(report.cases, report.counts.red),
    )
    asked = Ask(
        question="reflect",
        tier=Tier.strong,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    answer = (await ask_for(ports.model, asked, ReflectionAnswer)).value
    if answer is None:
        return noted
    return Reflection(
        root_cause=clip(answer.root_cause, 400),
        what_failed=clip(answer.what_failed, 400),
        try_next=clip(answer.try_next, 400),
    )


def asks_model(run: RunState) -> bool:
    """Return whether the run's policy asks a model after this attempt."""
    if run.spec.effort is Effort.full or run.spec.reflect is ReflectionPolicy.always:
        return True
    return run.spec.reflect is ReflectionPolicy.auto and run.tries >= SECOND


def _what_failed(report: Report) -> str:
    return clip("; ".join(f"{case.id}: {case.message}" for case in report.cases[:2]) or report.fault, 400)
