"""Plan one improvement: one thing to improve that a test can verify, and how to reach it when stuck."""

from __future__ import annotations

from functools import partial

from redstart.core.chat import AnswerFault, Ask, Tier
from redstart.core.context import Context
from redstart.core.frozen import clip
from redstart.core.learning import Plan, Subtask
from redstart.core.run import Effort, RunState
from redstart.core.tasks import ImproveTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import (
    ANSWER,
    CIRCLES,
    ask_for_change,
    limit_criteria,
    recall_failure,
    recall_patterns,
)
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.base.text import wrap_untrusted
from redstart.toolkit.languages.registry import is_code, is_test_path
from redstart.toolkit.model_tools.outline import outline
from redstart.toolkit.model_tools.visible_files import Files
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import ImprovementAnswer
from redstart.toolkit.prompts.ask_model import ask_for
from redstart.toolkit.prompts.fit_window import CHARACTERS_A_TOKEN, fit_messages
from redstart.toolkit.prompts.render import format_section
from redstart.toolkit.retrieval.rank import RankingQuestion
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.retrieval.review_context import survey

KINDS = ("bug", "robustness", "feature")
"""The kinds of improvements."""
OUTLINE = 12_000
"""Maximum characters of the program's outline in the question for an improvement."""
MAX_CODE_LENGTH = 60_000
"""Maximum characters of code in that question, if the model's window has room."""
LARGEST_JUDGED = 500_000
"""Size in bytes above which a file counts as data rather than as hand-written code."""


async def plan_cycle(run: RunState, ports: Ports) -> Plan:
    if run.now.reproduce is None:
        return await _choose_improvement(run, ports)
    base_plan = await recall_failure(run, ports)
    if not (run.spec.goal or run.history) and run.spec.effort is not Effort.full:
        return base_plan
    patterns = await recall_patterns(run, ports)
    base_plan = base_plan.model_copy(update={"patterns": tuple(item.pattern.id for item in patterns)})
    return await ask_for_change(run, ports, base_plan, CIRCLES if run.history else "")


async def _choose_improvement(run: RunState, ports: Ports) -> Plan:
    """Choose one thing to improve next that a test can verify. The plan has a fault if nothing was found."""
    trees, workspace = ports.trees, run.workspace
    read = partial(trees.read, workspace)
    patterns = await recall_patterns(run, ports)
    outline_text = outline(
        Files(trees.list_files(workspace), read, partial(trees.get_size, workspace)), is_test_path, OUTLINE
    )
    context, earlier = _select_code(run, ports), run.spec.get_task(ImproveTask).before
    messages = fit_messages(
        ports.note,
        "improve/plan",
        run.spec.asks.compute_question_tokens(ANSWER),
        goal=sections.build_goal_section(run.spec.goal),
        hint=sections.build_hint_section(run.spec.hint, await ports.person.read_messages()),
        patterns=sections.build_patterns_section(patterns),
        notes=sections.build_notes_section(read),
        files=format_section("Files", wrap_untrusted("files", outline_text, OUTLINE * 2)),
        code=sections.build_code_section(context, read),
        findings=sections.build_findings_section(run.now.audit),
        before=format_section("Done before", wrap_untrusted("cycles", "\n".join(earlier), 4000)) if earlier else "",
    )
    max_tokens = run.spec.asks.answer(ANSWER)
    request = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=max_tokens)
    outcome = await ask_for(ports.model, request, ImprovementAnswer)
    answer = outcome.value
    pattern_ids = tuple(item.pattern.id for item in patterns)
    if answer is None or not answer.title.strip():
        fault = clip(outcome.fault or "no improvement was named", 400)
        return Plan(patterns=pattern_ids, fault=fault, over_budget=outcome.answer.fault is AnswerFault.budget)
    kind = answer.kind.strip().lower()
    kind_name = kind if kind in KINDS else KINDS[-1]
    title = clip(" ".join(answer.title.split()), 200)
    aim = Subtask(title=title, criteria=limit_criteria(answer.criteria))
    return Plan(summary=f"{kind_name}: {title}", subtasks=(aim,), patterns=pattern_ids)


def _select_code(run: RunState, ports: Ports) -> Context:
    """Select the code from which an improvement is chosen: findings and matches of the goal first, then different files
    in each cycle."""
    trees, workspace = ports.trees, run.workspace
    read = partial(trees.read, workspace)
    files = [
        path
        for path in trees.list_files(workspace)
        if is_code(path) and not is_test_path(path) and (trees.get_size(workspace, path) or 0) <= LARGEST_JUDGED
    ]
    window = run.spec.asks.compute_question_tokens(ANSWER) * CHARACTERS_A_TOKEN // 2
    budget = min(MAX_CODE_LENGTH, window) if window else MAX_CODE_LENGTH
    finding_paths = [finding.path for finding in run.now.audit.first] if run.now.audit else []
    question = RankingQuestion(cases=(), goal=f"{run.spec.goal}\n{run.spec.hint}", tests=(), is_test=is_test_path)
    fitting = [chunk.path for chunk in rank(question, files, read, walk_search(files, read)).chunks]
    return survey(files, read, preferred=(*finding_paths, *fitting), turn=max(run.spec.errand, 1), budget=budget)
