"""Plan a new program: its parts and the packages that it needs, unless the user's tests define everything."""

from __future__ import annotations

from redstart.core.frozen import clip
from redstart.core.learning import Plan, Subtask
from redstart.core.packages import PackageRequest
from redstart.core.run import RunState
from redstart.core.tasks import CreateTask
from redstart.ports.bundle import Ports
from redstart.steps.plan.question import (
    CIRCLES,
    ask_for_plan,
    plan_messages,
    recall_failure,
    recall_patterns,
    with_subtasks,
)
from redstart.toolkit.installs.planned_packages import (
    get_package_manager,
    keep_installed,
    normalize_requests,
    settle_packages,
)
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import ProgramPlanAnswer
from redstart.toolkit.prompts.answers import ParsedAnswer
from redstart.toolkit.prompts.projects import describe_project


async def plan_program(run: RunState, ports: Ports) -> Plan:
    if given_plan := _plan_without_model(run):
        return given_plan
    # Before tests exist, only a person can have rejected the first plan, and their reply is shown already.
    reason = CIRCLES if run.history and run.now.reproduce is not None else ""
    if run.now.plan is not None and run.now.plan.asks:
        approval = await _with_packages(run, ports, run.now.plan)
        if approval.value is not None:
            return approval.value
        reason = approval.error or reason
    base_plan = await recall_failure(run, ports)
    patterns = await recall_patterns(run, ports)
    base_plan = base_plan.model_copy(update={"patterns": tuple(entry.pattern.id for entry in patterns)})
    mode_sections = {
        "package": describe_project(run.spec, run.packages, planned=False),
        "patterns": sections.build_patterns_section(patterns),
    }
    messages = await plan_messages(run, ports, base_plan, "create/plan", mode_sections, reason)

    async def accept(answer: ProgramPlanAnswer) -> ParsedAnswer[Plan]:
        plan = with_subtasks(ports, base_plan, answer)
        # Packages belong to the first plan: once tests exist, the program asks for more in its own manifest.
        if run.now.reproduce is None:
            requests = (PackageRequest(name=item.name, reason=item.reason) for item in answer.packages)
            plan = plan.model_copy(update={"packages": normalize_requests(requests, get_package_manager(run))})
        return await _with_packages(run, ports, plan)

    return await ask_for_plan(run, ports, messages, base_plan, ProgramPlanAnswer, accept)


def _plan_without_model(run: RunState) -> Plan | None:
    """Return the plan if no model is asked: for a part of a larger program, or if the user's tests define everything.

    A small model is never asked for a plan, because it would split work that it could do in one answer.
    """
    spec, task = run.spec, run.spec.get_task(CreateTask)
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
    if settled.question:
        waiting = {name.partition(":")[2] for name in settled.names}
        package_list = ", ".join(
            f"{request.name} ({request.reason})" if request.reason else request.name
            for request in requests
            if request.name in waiting
        )
        question = clip(f"the plan needs packages that are not on your allow list: {package_list}", 600)
        return ParsedAnswer(plan.model_copy(update={"asks": question, "to_approve": settled.names}))
    return ParsedAnswer(plan.model_copy(update={"installed": keep_installed(ports, settled, names)}))
