"""The question for a plan: what is recalled before it, its sections, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.course import Strategy
from redstart.core.learning import Plan, RecalledCard, Subtask
from redstart.core.noun import clip
from redstart.core.pattern import RecalledPattern
from redstart.core.run import MOST_CRITERIA, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.verdict.baseline import red_cases
from redstart.toolkit.learning.lessons import taught
from redstart.toolkit.looking.converse import converse
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import ParsedAnswer, read_json, schema
from redstart.toolkit.prompts.asking import REPAIRS, json_note, mend_tried, reader
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.shapes import PlanAnswer

ANSWER = 1500
"""Maximum tokens of an answer."""
SUBTASKS = 8
CRITERIA_BYTES = 10_000
"""Maximum bytes of all acceptance criteria of a plan together: the run state carries them."""
CIRCLES = "The last attempts went in circles: plan something else."
PATTERNS = 2
"""Maximum patterns of reached goals that are shown to a model that plans a similar goal."""
_NUMBERED = re.compile(r"(?:(?:subtask|task|part|step)s?\s*)?#?(\d{1,2})\.?")
AnswerT = TypeVar("AnswerT", bound=PlanAnswer)


async def recall_failure(run: RunState, ports: Ports) -> Plan:
    """Recall earlier fixes of the failure, and choose the lessons for the run, before anything is planned."""
    recalled = await _recall(run, ports)
    return Plan(recalled=recalled, taught=await taught(run, ports, red_cases(run, ports.blobs)))


async def _recall(run: RunState, ports: Ports) -> tuple[RecalledCard, ...]:
    found = run.now.reproduce
    if found is None or found.report.signature is None:
        return ()
    return tuple(await ports.memory.recall(found.report.signature, tenant=run.spec.tenant, repo=run.spec.repo))


async def reached_goals(run: RunState, ports: Ports) -> tuple[RecalledPattern, ...]:
    """Recall how similar goals were reached; empty for a part of a program, whose plan belongs to the whole program.

    Patterns of other cycles of the same improvement are left out: each cycle is told about them anyway.
    """
    spec = run.spec
    if spec.whole or not spec.goal.strip():
        return ()
    found = await ports.memory.patterns(spec.goal, tenant=spec.tenant, repo=spec.repo, limit=PATTERNS + 1)
    others = [pattern for pattern in found if not spec.errand or _parent(pattern) != spec.parent]
    return tuple(others[:PATTERNS])


def _parent(recalled: RecalledPattern) -> str:
    """Return the parent of the run that left the pattern; empty if the user started that run."""
    return recalled.pattern.provenance.get("run", "").rpartition(".")[0]


async def ask_for_change(run: RunState, ports: Ports, known: Plan, reason: str) -> Plan:
    """Ask for the plan of a change to an existing program; `reason` says why another plan is requested."""
    notes = {"notes": sections.notes(partial(ports.trees.read, run.ground))}
    messages = await plan_messages(run, ports, known, "plan", notes, reason)

    async def accept(answer: PlanAnswer) -> ParsedAnswer[Plan]:
        return ParsedAnswer(with_subtasks(ports, known, answer))

    return await ask_for_plan(run, ports, messages, known, PlanAnswer, accept)


async def plan_messages(
    run: RunState, ports: Ports, known: Plan, template: str, about: dict[str, str], reason: str
) -> tuple[Message, ...]:
    """Build the question from this template; `mode_sections` holds the mode's sections on the project."""

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    cases = red_cases(run, ports.blobs)
    return fitted(
        ports.note,
        template,
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal, run.spec.whole),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        **about,
        failing=sections.failing(cases, len(cases)),
        advice=sections.advised(known.taught or run.taught),
        tried=sections.tried(run.history, blob),
        probed=sections.probed(run.history, blob),
        looking=sections.looking(run.spec.looks),
        ask=section("Now", reason) if reason else "",
    )


async def ask_for_plan(
    run: RunState,
    ports: Ports,
    messages: tuple[Message, ...],
    known: Plan,
    shape: type[AnswerT],
    accept: Callable[[AnswerT], Awaitable[ParsedAnswer[Plan]]],
) -> Plan:
    """Ask for a plan and convert the answer with `accept`. If no answer is usable, return `base_plan` with a fault."""
    said = await converse(
        ports.model,
        _asked(run, messages, shape),
        desk(run, ports),
        run.spec.looks,
        is_answer=lambda text: read_json(text, shape) is not None,
        note=lambda look, served: ports.note(look=look, served=served),
    )
    read = reader(said.ask, shape)

    async def attempt(answer: Answer) -> ParsedAnswer[Plan]:
        reading = read(answer)
        return ParsedAnswer(None, reading.error) if reading.value is None else await accept(reading.value)

    heard = await mend_tried(ports.model, said.ask, said.answer, attempt, note=json_note, repairs=REPAIRS)
    if heard.value is None:
        fault = clip(heard.fault or "the plan could not be read", 400)
        return known.model_copy(update={"fault": fault, "over_budget": heard.answer.fault is AnswerFault.budget})
    return heard.value


def _asked(run: RunState, messages: tuple[Message, ...], shape: type[PlanAnswer]) -> Ask:
    """Build the request. A model that must follow a schema could not make a tool call."""
    return Ask(
        question="plan",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
        shape=None if run.spec.looks else schema(shape),
        # The model that led the run into circles does not lead it out of them.
        stuck=run.turn is not None and run.turn.strategy is Strategy.plan,
    )


class _Criteria(NamedTuple):
    subtasks: tuple[Subtask, ...]
    left_out: int
    """Number of criteria beyond what a run can carry."""


def with_subtasks(ports: Ports, known: Plan, answer: PlanAnswer) -> Plan:
    """Return the known plan with the summary and the subtasks of the answer."""
    kept = _subtasks(answer)
    if kept.left_out:
        ports.note(not_shown=[f"criteria beyond the first {MOST_CRITERIA}: {kept.left_out}"])
    return known.model_copy(update={"summary": clip(answer.summary, 600), "subtasks": kept.subtasks})


def _subtasks(found: PlanAnswer) -> _Criteria:
    """Convert the subtasks up to the limits. A dependency counts if it names another subtask of the plan."""
    first = found.subtasks[:SUBTASKS]
    places = {item.title.strip().casefold(): place for place, item in enumerate(first, 1)}
    places |= {str(place): place for place in range(1, len(first) + 1)}
    room, made = CRITERIA_BYTES, list[Subtask]()
    for place, item in enumerate(first, 1):
        criteria = whole_criteria(item.criteria, room)
        room -= sum(len(criterion.encode()) for criterion in criteria)
        needs = tuple(sorted({places.get(_plain(each), place) for each in item.needs} - {place}))
        made.append(Subtask(title=clip(item.title, 200), criteria=criteria, needs=needs))
    given = sum(len(item.criteria) for item in first)
    return _Criteria(tuple(made), given - sum(len(item.criteria) for item in made))


def whole_criteria(criteria: Sequence[str], room: int = CRITERIA_BYTES) -> tuple[str, ...]:
    """Return the first criteria that fit into `bytes_left`, each complete: half a sentence would mean something
    else."""
    kept: list[str] = []
    for criterion in criteria[:MOST_CRITERIA]:
        text = clip(criterion, CRITERIA_BYTES // 4)
        room -= len(text.encode())
        if room < 0:
            break
        kept.append(text)
    return tuple(kept)


def _plain(need: str) -> str:
    """Normalize a dependency: `subtask 1` and `#1` become `1`."""
    words = need.strip().casefold()
    return number[1] if (number := _NUMBERED.fullmatch(words)) else words
