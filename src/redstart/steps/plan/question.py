"""The question for a plan: what is known before it is asked, what is in it, and how its answer is read."""

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
"""Tokens of an answer."""
SUBTASKS = 8
CRITERIA_BYTES = 10_000
"""Bytes of all acceptance criteria of a plan together: the run carries them from step to step."""
CIRCLES = "The last attempts went in circles: plan something else."
PATTERNS = 2
"""How many goals that were reached before are shown to a model that plans a like goal."""
_NUMBERED = re.compile(r"(?:(?:subtask|task|part|step)s?\s*)?#?(\d{1,2})\.?")
AnswerT = TypeVar("AnswerT", bound=PlanAnswer)


async def recall_failure(run: RunState, ports: Ports) -> Plan:
    """What is known of the failure before anything is planned: earlier fixes, and the lessons that the run is shown."""
    recalled = await _recall(run, ports)
    return Plan(recalled=recalled, taught=await taught(run, ports, red_cases(run, ports.blobs)))


async def _recall(run: RunState, ports: Ports) -> tuple[RecalledCard, ...]:
    found = run.now.reproduce
    if found is None or found.report.signature is None:
        return ()
    return tuple(await ports.memory.recall(found.report.signature, tenant=run.spec.tenant, repo=run.spec.repo))


async def reached_goals(run: RunState, ports: Ports) -> tuple[RecalledPattern, ...]:
    """How goals like this run's were reached before; nothing for a part of a program, whose plan is the whole's.

    What other cycles of the same improvement did is told to each of them anyway.
    """
    spec = run.spec
    if spec.whole or not spec.goal.strip():
        return ()
    found = await ports.memory.patterns(spec.goal, tenant=spec.tenant, repo=spec.repo, limit=PATTERNS + 1)
    others = [pattern for pattern in found if not spec.errand or _parent(pattern) != spec.parent]
    return tuple(others[:PATTERNS])


def _parent(recalled: RecalledPattern) -> str:
    """The run that began the one which left it; empty where nobody but the user did."""
    return recalled.pattern.provenance.get("run", "").rpartition(".")[0]


async def ask_for_change(run: RunState, ports: Ports, known: Plan, reason: str) -> Plan:
    """The plan of a change to a program that is there; `reason` says why another plan is asked for."""
    notes = {"notes": sections.notes(partial(ports.trees.read, run.ground))}
    messages = await plan_messages(run, ports, known, "plan", notes, reason)

    async def accept(answer: PlanAnswer) -> ParsedAnswer[Plan]:
        return ParsedAnswer(with_subtasks(ports, known, answer))

    return await ask_for_plan(run, ports, messages, known, PlanAnswer, accept)


async def plan_messages(
    run: RunState, ports: Ports, known: Plan, template: str, about: dict[str, str], reason: str
) -> tuple[Message, ...]:
    """The question in this template, with sections `about` the project of this mode."""

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
    """The plan that `accept` makes of the model's answer; `known` with a fault where none can be used."""
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
    """A model that is held to the answer's shape could not write a call of a look."""
    return Ask(
        question="plan",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
        shape=None if run.spec.looks else schema(shape),
        # Who goes in circles is not led out of them by the model that led there.
        stuck=run.turn is not None and run.turn.strategy is Strategy.plan,
    )


class _Criteria(NamedTuple):
    subtasks: tuple[Subtask, ...]
    left_out: int
    """Criteria beyond what a run can carry."""


def with_subtasks(ports: Ports, known: Plan, answer: PlanAnswer) -> Plan:
    """What is known, with the summary and the subtasks of the answer."""
    kept = _subtasks(answer)
    if kept.left_out:
        ports.note(not_shown=[f"criteria beyond the first {MOST_CRITERIA}: {kept.left_out}"])
    return known.model_copy(update={"summary": clip(answer.summary, 600), "subtasks": kept.subtasks})


def _subtasks(found: PlanAnswer) -> _Criteria:
    """As far as there may be. What a model says of their order is taken where it names one of them, and not itself."""
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
    """The first criteria that fit into so many bytes, each whole: half a sentence would ask for something else."""
    kept: list[str] = []
    for criterion in criteria[:MOST_CRITERIA]:
        text = clip(criterion, CRITERIA_BYTES // 4)
        room -= len(text.encode())
        if room < 0:
            break
        kept.append(text)
    return tuple(kept)


def _plain(need: str) -> str:
    """`1` for `subtask 1` and `#1` too."""
    words = need.strip().casefold()
    return number[1] if (number := _NUMBERED.fullmatch(words)) else words
