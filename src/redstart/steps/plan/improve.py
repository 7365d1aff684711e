"""Plan one improvement: one thing to improve that a test can verify, and how to reach it when stuck."""

from __future__ import annotations

from functools import partial

from redstart.core.chat import AnswerFault, Ask, Tier
from redstart.core.context import Context
from redstart.core.learning import Plan, Subtask
from redstart.core.noun import clip
from redstart.core.run import Effort, RunState
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import (
    ANSWER,
    CIRCLES,
    ask_for_change,
    reached_goals,
    recall_failure,
    whole_criteria,
)
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.base.text import data
from redstart.toolkit.languages.registry import is_code, is_test_path
from redstart.toolkit.looking.files import Files
from redstart.toolkit.looking.outline import outline
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import CHARACTERS_A_TOKEN, fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.shapes import ImprovementAnswer
from redstart.toolkit.retrieval.rank import RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.retrieval.survey import survey

KINDS = ("bug", "robustness", "feature")
"""The kinds of improvements."""
OUTLINE = 12_000
"""Maximum characters of the program's outline in the question for an improvement."""
JUDGED = 60_000
"""Maximum characters of code in that question, if the model's window has room."""
LARGEST_JUDGED = 500_000
"""Size in bytes above which a file counts as data rather than as hand-written code."""


async def plan_cycle(run: RunState, ports: Ports) -> Plan:
    if run.now.reproduce is None:
        return await _improvement(run, ports)
    known = await recall_failure(run, ports)
    if not (run.spec.goal or run.history) and run.spec.effort is not Effort.full:
        return known
    reached = await reached_goals(run, ports)
    known = known.model_copy(update={"patterns": tuple(item.pattern.id for item in reached)})
    return await ask_for_change(run, ports, known, CIRCLES if run.history else "")


async def _improvement(run: RunState, ports: Ports) -> Plan:
    """Choose one thing to improve next that a test can verify. The plan has a fault if nothing was found."""
    trees, ground = ports.trees, run.ground
    read = partial(trees.read, ground)
    reached = await reached_goals(run, ports)
    shown = outline(Files(trees.files(ground), read, partial(trees.size, ground)), is_test_path, OUTLINE)
    judged, done = _code_to_judge(run, ports), run.spec.task_of(ImproveTask).before
    messages = fitted(
        ports.note,
        "improve/plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        patterns=sections.patterns(reached),
        notes=sections.notes(read),
        files=section("Files", data("files", shown, OUTLINE * 2)),
        code=sections.code(judged, read),
        findings=sections.findings(run.now.audit),
        before=section("Done before", data("cycles", "\n".join(done), 4000)) if done else "",
    )
    most = run.spec.asks.answer(ANSWER)
    asked = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=most)
    heard = await ask_for(ports.model, asked, ImprovementAnswer)
    found = heard.value
    seen = tuple(item.pattern.id for item in reached)
    if found is None or not found.title.strip():
        fault = clip(heard.fault or "no improvement was named", 400)
        return Plan(patterns=seen, fault=fault, over_budget=heard.answer.fault is AnswerFault.budget)
    kind = found.kind.strip().lower()
    named = kind if kind in KINDS else KINDS[-1]
    title = clip(" ".join(found.title.split()), 200)
    aim = Subtask(title=title, criteria=whole_criteria(found.criteria))
    return Plan(summary=f"{named}: {title}", subtasks=(aim,), patterns=seen)


def _code_to_judge(run: RunState, ports: Ports) -> Context:
    """Select the code from which an improvement is chosen: findings and matches of the goal first, then different files
    in each cycle."""
    trees, ground = ports.trees, run.ground
    read = partial(trees.read, ground)
    files = [
        path
        for path in trees.files(ground)
        if is_code(path) and not is_test_path(path) and (trees.size(ground, path) or 0) <= LARGEST_JUDGED
    ]
    window = run.spec.asks.room(ANSWER) * CHARACTERS_A_TOKEN // 2
    budget = min(JUDGED, window) if window else JUDGED
    named = [finding.path for finding in run.now.audit.first] if run.now.audit else []
    sought = RankingQuestion(cases=(), goal=f"{run.spec.goal}\n{run.spec.hint}", tests=(), is_test=is_test_path)
    fitting = [chunk.path for chunk in rank(sought, files, read, walk_search(files, read)).chunks]
    return survey(files, read, first=(*named, *fitting), turn=max(run.spec.errand, 1), budget=budget)
