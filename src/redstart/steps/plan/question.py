"""The question for a plan: what is recalled before it, its sections, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.frozen import clip
from redstart.core.learning import Plan, RecalledCard, Subtask
from redstart.core.pattern import RecalledPattern
from redstart.core.progress import Strategy
from redstart.core.run import MOST_CRITERIA, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.verdict.baseline import list_failing_cases
from redstart.toolkit.learning.failures import MAX_FIXES, leave_out_siblings
from redstart.toolkit.learning.lessons import draw_lessons_for_run
from redstart.toolkit.model_tools.conversation import converse
from redstart.toolkit.model_tools.toolset import create_toolset
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answer_types import PlanAnswer
from redstart.toolkit.prompts.answers import ParsedAnswer, build_schema, read_json
from redstart.toolkit.prompts.ask_model import REPAIRS, create_reader, format_json_note, repair_after_trial
from redstart.toolkit.prompts.fit_window import fit_messages
from redstart.toolkit.prompts.render import format_section

ANSWER = 1500
"""Maximum tokens of an answer."""
SUBTASKS = 8
CRITERIA_BYTES = 10_000
"""Maximum bytes of all acceptance criteria of a plan together: the run state carries them."""
CIRCLES = "The last attempts went in circles: plan something else."
PATTERNS = 2
"""Maximum patterns of reached goals that are shown to a model that plans a similar goal."""
_TASK_NUMBER = re.compile(r"(?:(?:subtask|task|part|step)s?\s*)?#?(\d{1,2})\.?")
AnswerT = TypeVar("AnswerT", bound=PlanAnswer)


async def recall_failure(run: RunState, ports: Ports) -> Plan:
    """Recall earlier fixes of the failure, and choose the lessons for the run, before anything is planned."""
    recalled = await _recall(run, ports)
    return Plan(recalled=recalled, taught=await draw_lessons_for_run(run, ports, list_failing_cases(run, ports.blobs)))


async def _recall(run: RunState, ports: Ports) -> tuple[RecalledCard, ...]:
    reproduction = run.now.reproduce
    if reproduction is None or reproduction.report.signature is None:
        return ()
    spec = run.spec
    limit = MAX_FIXES + len(spec.sibling_ids)
    fixes = await ports.memory.recall(reproduction.report.signature, tenant=spec.tenant, repo=spec.repo, limit=limit)
    return leave_out_siblings(run, fixes)


async def recall_patterns(run: RunState, ports: Ports) -> tuple[RecalledPattern, ...]:
    """Recall how similar goals were reached; empty for a part of a program, whose plan belongs to the whole program.

    Patterns of other cycles of the same improvement are left out: each cycle is told about them anyway.
    """
    spec = run.spec
    if spec.program_goal or not spec.goal.strip():
        return ()
    patterns = await ports.memory.recall_patterns(spec.goal, tenant=spec.tenant, repo=spec.repo, limit=PATTERNS + 1)
    relevant = [pattern for pattern in patterns if not spec.errand or _get_parent(pattern) != spec.parent]
    return tuple(relevant[:PATTERNS])


def _get_parent(recalled: RecalledPattern) -> str:
    """Return the parent of the run that left the pattern; empty if the user started that run."""
    return recalled.pattern.provenance.get("run", "").rpartition(".")[0]


async def ask_for_change(run: RunState, ports: Ports, base_plan: Plan, reason: str) -> Plan:
    """Ask for the plan of a change to an existing program; `reason` says why another plan is requested."""
    notes = {"notes": sections.build_notes_section(partial(ports.trees.read, run.workspace))}
    messages = await plan_messages(run, ports, base_plan, "plan", notes, reason)

    async def accept(answer: PlanAnswer) -> ParsedAnswer[Plan]:
        return ParsedAnswer(with_subtasks(ports, base_plan, answer))

    return await ask_for_plan(run, ports, messages, base_plan, PlanAnswer, accept)


async def plan_messages(
    run: RunState, ports: Ports, base_plan: Plan, template: str, mode_sections: dict[str, str], reason: str
) -> tuple[Message, ...]:
    """Build the question from this template; `mode_sections` holds the mode's sections on the project."""

    def read_blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    cases = list_failing_cases(run, ports.blobs)
    return fit_messages(
        ports.note,
        template,
        run.spec.asks.compute_question_tokens(ANSWER),
        goal=sections.build_goal_section(run.spec.goal, run.spec.program_goal),
        hint=sections.build_hint_section(run.spec.hint, await ports.person.read_messages()),
        **mode_sections,
        failing=sections.build_failing_section(cases, len(cases)),
        advice=sections.build_lessons_section(base_plan.taught or run.taught),
        tried=sections.build_tried_section(run.history, read_blob),
        probed=sections.build_probes_section(run.history, read_blob),
        looking=sections.build_tools_section(run.spec.looks),
        ask=format_section("Now", reason) if reason else "",
    )


async def ask_for_plan(
    run: RunState,
    ports: Ports,
    messages: tuple[Message, ...],
    base_plan: Plan,
    shape: type[AnswerT],
    accept: Callable[[AnswerT], Awaitable[ParsedAnswer[Plan]]],
) -> Plan:
    """Ask for a plan and convert the answer with `accept`. If no answer is usable, return `base_plan` with a fault."""
    conversation = await converse(
        ports.model,
        _build_request(run, messages, shape),
        create_toolset(run, ports),
        run.spec.looks,
        is_answer=lambda text: read_json(text, shape) is not None,
        note=lambda tool_call, result: ports.note(look=tool_call, served=result),
    )
    read = create_reader(conversation.ask, shape)

    async def attempt(answer: Answer) -> ParsedAnswer[Plan]:
        parsed = read(answer)
        return ParsedAnswer(None, parsed.error) if parsed.value is None else await accept(parsed.value)

    outcome = await repair_after_trial(
        ports.model, conversation.ask, conversation.answer, attempt, note=format_json_note, repairs=REPAIRS
    )
    if outcome.value is None:
        fault = clip(outcome.fault or "the plan could not be read", 400)
        return base_plan.model_copy(update={"fault": fault, "over_budget": outcome.answer.fault is AnswerFault.budget})
    return outcome.value


def _build_request(run: RunState, messages: tuple[Message, ...], shape: type[PlanAnswer]) -> Ask:
    """Build the request. A model that must follow a schema could not make a tool call."""
    return Ask(
        question="plan",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
        shape=None if run.spec.looks else build_schema(shape),
        # The model that led the run into circles does not lead it out of them.
        stuck=run.turn is not None and run.turn.strategy is Strategy.plan,
    )


class _Criteria(NamedTuple):
    subtasks: tuple[Subtask, ...]
    left_out: int
    """Number of criteria beyond what a run can carry."""


def with_subtasks(ports: Ports, base_plan: Plan, answer: PlanAnswer) -> Plan:
    """Return the known plan with the summary and the subtasks of the answer."""
    converted = _convert_subtasks(answer)
    if converted.left_out:
        ports.note(not_shown=[f"criteria beyond the first {MOST_CRITERIA}: {converted.left_out}"])
    return base_plan.model_copy(update={"summary": clip(answer.summary, 600), "subtasks": converted.subtasks})


def _convert_subtasks(answer: PlanAnswer) -> _Criteria:
    """Convert the subtasks up to the limits. A dependency counts if it names another subtask of the plan."""
    first = answer.subtasks[:SUBTASKS]
    places = {item.title.strip().casefold(): place for place, item in enumerate(first, 1)}
    places |= {str(place): place for place in range(1, len(first) + 1)}
    bytes_left, subtasks = CRITERIA_BYTES, list[Subtask]()
    for place, item in enumerate(first, 1):
        criteria = limit_criteria(item.criteria, bytes_left)
        bytes_left -= sum(len(criterion.encode()) for criterion in criteria)
        needs = tuple(
            sorted({places.get(_normalize_dependency(dependency), place) for dependency in item.needs} - {place})
        )
        subtasks.append(Subtask(title=clip(item.title, 200), criteria=criteria, needs=needs))
    total = sum(len(item.criteria) for item in first)
    return _Criteria(tuple(subtasks), total - sum(len(item.criteria) for item in subtasks))


def limit_criteria(criteria: Sequence[str], bytes_left: int = CRITERIA_BYTES) -> tuple[str, ...]:
    """Return the first criteria that fit into `bytes_left`, each complete: half a sentence would mean something
    else."""
    selected: list[str] = []
    for criterion in criteria[:MOST_CRITERIA]:
        text = clip(criterion, CRITERIA_BYTES // 4)
        bytes_left -= len(text.encode())
        if bytes_left < 0:
            break
        selected.append(text)
    return tuple(selected)


def _normalize_dependency(dependency: str) -> str:
    """Normalize a dependency: `subtask 1` and `#1` become `1`."""
    text = dependency.strip().casefold()
    return number[1] if (number := _TASK_NUMBER.fullmatch(text)) else text
