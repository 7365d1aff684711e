"""Why it is still red. A lean run asks that in the same call as the next patch; here it only notes what failed."""

from __future__ import annotations

from redstart.core.chat import Ask, Tier
from redstart.core.learning import Reflection
from redstart.core.noun import clip
from redstart.core.report import Report
from redstart.core.run import Effort, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import data, section
from redstart.toolkit.prompts.shapes import ReflectionAnswer

ANSWER = 800
"""Tokens of an answer."""


async def reflect(run: RunState, ports: Ports) -> Reflection:
    report = run.now.test.report if run.now.test else None
    noted = Reflection(what_failed=_what_failed(report) if report else "")
    if run.spec.effort is Effort.lean or report is None:
        return noted
    diff = ports.blobs.get(run.now.apply.diff).decode(errors="replace") if run.now.apply else ""
    messages = fitted(
        ports.note,
        "reflect",
        run.spec.asks.room(ANSWER),
        failing=sections.failing(report.cases, report.counts.red),
        tried=section("What was tried", data("attempt", diff, 6000)),
    )
    asked = Ask(
        question="reflect",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    found = (await ask_for(ports.model, asked, ReflectionAnswer)).value
    if found is None:
        return noted
    return Reflection(
        root_cause=clip(found.root_cause, 400),
        what_failed=clip(found.what_failed, 400),
        try_next=clip(found.try_next, 400),
    )


def _what_failed(report: Report) -> str:
    return clip("; ".join(f"{case.id}: {case.message}" for case in report.cases[:2]) or report.fault, 400)
