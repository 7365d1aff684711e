"""Recalls what is known of this failure, and says what to do where that is not plain: for a goal, or when stuck."""

from __future__ import annotations

from redstart.core.chat import Ask, Message, Tier
from redstart.core.learning import Plan, Recalled, Subtask
from redstart.core.noun import clip
from redstart.core.run import Effort, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import read_json, schema
from redstart.toolkit.prompts.asking import REPAIRS, json_note, mend, reader
from redstart.toolkit.prompts.converse import converse
from redstart.toolkit.prompts.render import render, section
from redstart.toolkit.prompts.shapes import PlanAnswer
from redstart.toolkit.retrieval.lexical import walk_search
from redstart.toolkit.suites.history import ask_git


async def plan(run: RunState, ports: Ports) -> Plan:
    recalled = await _recall(run, ports)
    stuck = bool(run.history)
    if not (run.spec.goal or stuck or run.spec.effort is Effort.full):
        return Plan(recalled=recalled)
    cases = red_cases(run, ports.blobs)

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    messages = render(
        "plan",
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        notes=sections.notes(lambda path: ports.trees.read(run.ground, path)),
        failing=sections.failing(cases, len(cases)),
        tried=sections.tried(run.history, blob),
        probed=sections.probed(run.history, blob),
        looking=sections.looking(run.spec.looks),
        ask=section("Now", "The last attempts went in circles: plan something else.") if stuck else "",
    )
    said = await converse(
        ports.model,
        _asked(messages, run.spec.looks),
        desk(run, ports, find=walk_search, ask_git=ask_git),
        run.spec.looks,
        is_answer=lambda text: read_json(text, PlanAnswer) is not None,
        note=lambda look, served: ports.note(look=look, served=served),
    )
    read = reader(said.ask, PlanAnswer)
    heard = await mend(ports.model, said.ask, said.answer, read, note=json_note, repairs=REPAIRS)
    found = heard.value
    if found is None:
        return Plan(recalled=recalled, fault=clip(heard.fault or "the plan could not be read", 400))
    subtasks = tuple(
        Subtask(title=clip(one.title, 200), criteria=tuple(clip(each, 200) for each in one.criteria[:8]))
        for one in found.subtasks[:8]
    )
    return Plan(summary=clip(found.summary, 600), subtasks=subtasks, recalled=recalled)


def _asked(messages: tuple[Message, ...], looks: int) -> Ask:
    """A model that is held to the answer's shape could not write a call of a look."""
    return Ask(
        question="plan",
        tier=Tier.fast,
        messages=messages,
        max_tokens=1500,
        shape=None if looks else schema(PlanAnswer),
    )


async def _recall(run: RunState, ports: Ports) -> tuple[Recalled, ...]:
    found = run.now.reproduce
    if found is None or found.report.signature is None:
        return ()
    return tuple(await ports.memory.recall(found.report.signature, tenant=run.spec.tenant, repo=run.spec.repo))
