"""Plan what an audit covers: everything, or what a model derives from the goal."""

from __future__ import annotations

from redstart.core.chat import AnswerFault, Ask, Tier
from redstart.core.frozen import clip
from redstart.core.learning import Plan
from redstart.core.run import RunState
from redstart.core.tasks import AuditTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import ANSWER
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import ScopeAnswer
from redstart.toolkit.prompts.ask_model import ask_for
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

MAX_LISTED_FILES = 2000
"""Maximum files in the list from which the model chooses."""


async def plan_audit(run: RunState, ports: Ports) -> Plan:
    scan = run.spec.get_task(AuditTask).scan
    if not run.spec.goal or scan is None or not scan.review:
        return Plan(summary=run.spec.goal[:600])
    file_list = "\n".join(ports.trees.list_files(run.workspace)[:MAX_LISTED_FILES])
    messages = fit_messages(
        ports.note,
        "audit/plan",
        run.spec.asks.compute_question_tokens(ANSWER),
        goal=sections.build_goal_section(run.spec.goal),
        files=format_section("Files", wrap_untrusted("files", file_list, 40_000)),
    )
    request = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))
    outcome = await ask_for(ports.model, request, ScopeAnswer)
    answer = outcome.value
    if answer is None:
        fault = clip(outcome.fault or "what to look at could not be read; everything is", 400)
        return Plan(fault=fault, over_budget=outcome.answer.fault is AnswerFault.budget)
    reviews = tuple(dict.fromkeys(item for item in answer.reviews if item in ("sql", "code")))
    return Plan(
        summary=clip(answer.summary, 600), reviews=reviews, files=tuple(clip(file, 200) for file in answer.files[:50])
    )
