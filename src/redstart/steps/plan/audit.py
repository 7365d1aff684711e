"""Plan what an audit covers: everything, or what a model derives from the goal."""

from __future__ import annotations

from redstart.core.chat import AnswerFault, Ask, Tier
from redstart.core.learning import Plan
from redstart.core.noun import clip
from redstart.core.run import RunState
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import ANSWER
from redstart.toolkit.base.text import data
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.shapes import ScopeAnswer

LISTED = 2000
"""Maximum files in the list from which the model chooses."""


async def plan_audit(run: RunState, ports: Ports) -> Plan:
    scan = run.spec.task_of(AuditTask).scan
    if not run.spec.goal or scan is None or not scan.review:
        return Plan(summary=run.spec.goal[:600])
    listed = "\n".join(ports.trees.files(run.ground)[:LISTED])
    messages = fitted(
        ports.note,
        "audit/plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal),
        files=section("Files", data("files", listed, 40_000)),
    )
    asked = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))
    heard = await ask_for(ports.model, asked, ScopeAnswer)
    found = heard.value
    if found is None:
        fault = clip(heard.fault or "what to look at could not be read; everything is", 400)
        return Plan(fault=fault, over_budget=heard.answer.fault is AnswerFault.budget)
    reviews = tuple(dict.fromkeys(item for item in found.reviews if item in ("sql", "code")))
    return Plan(
        summary=clip(found.summary, 600), reviews=reviews, files=tuple(clip(file, 200) for file in found.files[:50])
    )
