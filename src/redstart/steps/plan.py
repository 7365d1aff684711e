"""Recalls what is known of this failure, and says what to do where that is not plain: for a goal, or when stuck."""

from __future__ import annotations

from pydantic import BaseModel

from redstart.core.chat import Ask, Tier
from redstart.core.learning import Plan, Recalled, Subtask
from redstart.core.noun import clip
from redstart.core.run import Effort, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import read_json
from redstart.toolkit.prompts.render import render, section


class _Subtask(BaseModel):
    title: str
    criteria: list[str] = []


class _Answer(BaseModel):
    summary: str
    subtasks: list[_Subtask] = []


async def plan(run: RunState, ports: Ports) -> Plan:
    recalled = await _recall(run, ports)
    stuck = bool(run.history)
    if not (run.spec.goal or stuck or run.spec.effort is Effort.full):
        return Plan(recalled=recalled)
    cases = red_cases(run, ports.blobs)
    messages = render(
        "plan",
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        notes=sections.notes(lambda path: ports.trees.read(run.ground, path)),
        failing=sections.failing(cases, len(cases)),
        tried=sections.tried(run.history, lambda diff: ports.blobs.get(diff).decode(errors="replace")),
        ask=section("Now", "The last attempts went in circles: plan something else.") if stuck else "",
    )
    answer = await ports.model.ask(Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=1500))
    found = None if answer.fault else read_json(answer.text, _Answer)
    if found is None:
        return Plan(recalled=recalled, fault=answer.fault.value if answer.fault else "the plan could not be read")
    subtasks = tuple(
        Subtask(title=clip(one.title, 200), criteria=tuple(clip(each, 200) for each in one.criteria[:8]))
        for one in found.subtasks[:8]
    )
    return Plan(summary=clip(found.summary, 600), subtasks=subtasks, recalled=recalled)


async def _recall(run: RunState, ports: Ports) -> tuple[Recalled, ...]:
    found = run.now.reproduce
    if found is None or found.report.signature is None:
        return ()
    return tuple(await ports.memory.recall(found.report.signature, tenant=run.spec.tenant, repo=run.spec.repo))
