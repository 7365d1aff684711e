"""Plan a new program: its parts and the packages that it needs, unless the user's tests define everything."""

from __future__ import annotations

from redstart.core.learning import Plan, Subtask
from redstart.core.noun import clip
from redstart.core.packages import PackageRequest
from redstart.core.run import RunState
from redstart.core.tasks import CreateTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import (
    CIRCLES,
    ask_for_plan,
    plan_messages,
    reached_goals,
    recall_failure,
    with_subtasks,
)
from redstart.toolkit.installs.planned import keep_installed, packages_of, readable_requests, settle_packages
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.prompts.projects import project
from redstart.toolkit.prompts.shapes import ProgramPlanAnswer


async def plan_program(run: RunState, ports: Ports) -> Plan:
    if given := _given(run):
        return given
    # Before tests exist, only a person can have rejected the first plan, and their reply is shown already.
    reason = CIRCLES if run.history and run.now.reproduce is not None else ""
    if run.now.plan is not None and run.now.plan.asks:
        approved = await _with_packages(run, ports, run.now.plan)
        if approved.value is not None:
            return approved.value
        reason = approved.error or reason
    known = await recall_failure(run, ports)
    reached = await reached_goals(run, ports)
    known = known.model_copy(update={"patterns": tuple(entry.pattern.id for entry in reached)})
    about = {"package": project(run.spec, run.packages, planned=False), "patterns": sections.patterns(reached)}
    messages = await plan_messages(run, ports, known, "create/plan", about, reason)

    async def accept(answer: ProgramPlanAnswer) -> ParsedAnswer[Plan]:
        plan = with_subtasks(ports, known, answer)
        # Packages belong to the first plan: once tests exist, the program asks for more in its own manifest.
        if run.now.reproduce is None:
            named = (PackageRequest(name=item.name, reason=item.reason) for item in answer.packages)
            plan = plan.model_copy(update={"packages": readable_requests(named, packages_of(run))})
        return await _with_packages(run, ports, plan)

    return await ask_for_plan(run, ports, messages, known, ProgramPlanAnswer, accept)


def _given(run: RunState) -> Plan | None:
    """Return the plan if no model is asked: for a part of a larger program, or if the user's tests define everything.

    A small model is never asked for a plan: it would split what it could write at once.
    """
    spec, task = run.spec, run.spec.task_of(CreateTask)
    if spec.asks.brief and not task.whole:
        return Plan(summary=clip(spec.goal, 600))
    if run.history or not (task.whole or task.own_tests):
        return None
    parts = (Subtask(title=clip(spec.goal, 200), criteria=task.criteria),) if task.whole else ()
    return Plan(summary=clip(spec.goal, 600), subtasks=parts)


async def _with_packages(run: RunState, ports: Ports, plan: Plan) -> ParsedAnswer[Plan]:
    """Return the plan with its packages installed or waiting for approval. The error names unusable packages and
    why."""
    requests = plan.packages
    names = tuple(request.name for request in requests)
    settled = await settle_packages(run, ports, names) if names else None
    plan = plan.model_copy(update={"asks": "", "to_approve": ()})
    if settled is None:
        return ParsedAnswer(plan)
    if settled.refused:
        return ParsedAnswer(None, clip(f"these packages cannot be used: {' '.join(settled.refused)}", 600))
    if settled.asks:
        waiting = {name.partition(":")[2] for name in settled.names}
        listed = ", ".join(
            f"{request.name} ({request.reason})" if request.reason else request.name
            for request in requests
            if request.name in waiting
        )
        asks = clip(f"the plan needs packages that are not on your allow list: {listed}", 600)
        return ParsedAnswer(plan.model_copy(update={"asks": asks, "to_approve": settled.names}))
    return ParsedAnswer(plan.model_copy(update={"installed": keep_installed(ports, settled, names)}))
