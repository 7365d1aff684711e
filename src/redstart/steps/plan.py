"""Recalls what is known of this failure, and says what to do where that is not plain: for a goal, or when stuck."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.chat import Answer, Ask, Fault, Message, Tier
from redstart.core.context import Context
from redstart.core.course import Strategy
from redstart.core.learning import Plan, Recalled, Subtask
from redstart.core.noun import clip
from redstart.core.packages import PackageRequest
from redstart.core.pattern import RecalledPattern
from redstart.core.run import MOST_CRITERIA, Effort, Mode, RunState
from redstart.core.tasks import AuditTask, CreateTask, FixTask, ImproveTask
from redstart.ports.bundle import Ports
from redstart.toolkit.base.search import walk_search
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.installs.planned import keep_installed, language_of, readable_requests, settle_packages
from redstart.toolkit.languages.registry import is_code, is_test_path
from redstart.toolkit.learning.advice import taught
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.looking.files import Files
from redstart.toolkit.looking.outline import outline
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import Reading, read_json, schema
from redstart.toolkit.prompts.asking import REPAIRS, ask_for, json_note, mend_tried, reader
from redstart.toolkit.prompts.converse import converse
from redstart.toolkit.prompts.fit import CHARACTERS_A_TOKEN, fitted
from redstart.toolkit.prompts.projects import project
from redstart.toolkit.prompts.render import data, section
from redstart.toolkit.prompts.shapes import ImprovementAnswer, PlanAnswer, ProgramPlanAnswer
from redstart.toolkit.prompts.shapes_audit import ScopeAnswer
from redstart.toolkit.retrieval.rank import Question
from redstart.toolkit.retrieval.rank import retrieve as rank
from redstart.toolkit.retrieval.survey import survey

ANSWER = 1500
"""Tokens of an answer."""
KINDS = ("bug", "robustness", "feature")
"""What an improvement can be."""
OUTLINE = 12_000
"""Characters of what a program looks like, for one who is to improve it."""
JUDGED = 60_000
"""Characters of code that one who is to improve a program reads, where the model's window has room for them."""
LARGEST_JUDGED = 500_000
"""Bytes of a file beyond which it is data rather than code that somebody wrote."""
LISTED = 2000
"""Files that are listed to a model that chooses among them."""
SUBTASKS = 8
CRITERIA_BYTES = 10_000
"""Bytes of all acceptance criteria of a plan together: the run carries them from step to step."""
_CIRCLES = "The last attempts went in circles: plan something else."
PATTERNS = 2
"""How many goals that were reached before are shown to one who plans a like one."""
_NUMBERED = re.compile(r"(?:(?:subtask|task|part|step)s?\s*)?#?(\d{1,2})\.?")


async def plan(run: RunState, ports: Ports) -> Plan:
    if run.spec.mode is Mode.audit:
        return await _scope(run, ports)
    if run.spec.mode is Mode.improve and run.now.reproduce is None:
        return await _improvement(run, ports)
    if run.spec.mode is Mode.create and (given := _given(run)):
        return given
    refused = ""
    if run.now.plan is not None and run.now.plan.asks:
        approved = await _with_packages(run, ports, run.now.plan)
        if approved.value is not None:
            return approved.value
        refused = approved.error
    recalled = await _recall(run, ports)
    cases = red_cases(run, ports.blobs)
    told = await taught(run, ports, cases)
    stuck = bool(run.history)
    # The red test of an issue says what to do; a goal alone does not.
    task = run.spec.task
    plain = (isinstance(task, FixTask) and task.issue) or not run.spec.goal
    if plain and not stuck and run.spec.effort is not Effort.full:
        return Plan(recalled=recalled, taught=told)

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    is_new = run.spec.mode is Mode.create
    notes = sections.notes(partial(ports.trees.read, run.ground))
    reached = await _reached(run, ports)
    about = {"package": project(run.spec, run.packages, planned=False), "patterns": sections.patterns(reached)}
    messages = fitted(
        ports.note,
        "create/plan" if is_new else "plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal, run.spec.whole),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        **(about if is_new else {"notes": notes}),
        failing=sections.failing(cases, len(cases)),
        advice=sections.advised(told or run.taught),
        tried=sections.tried(run.history, blob),
        probed=sections.probed(run.history, blob),
        looking=sections.looking(run.spec.looks),
        ask=_ask(run, refused),
    )
    known = Plan(recalled=recalled, taught=told, patterns=tuple(one.pattern.id for one in reached))
    return await _ask_for_plan(run, ports, messages, known)


def _ask(run: RunState, refused: str) -> str:
    """Why another plan is asked for: packages that cannot be installed, or attempts that went in circles."""
    # Before there are tests it is a person who did not want the first plan, and what they said is shown already.
    went_in_circles = bool(run.history) and not (run.spec.mode is Mode.create and run.now.reproduce is None)
    reason = refused or (_CIRCLES if went_in_circles else "")
    return section("Now", reason) if reason else ""


async def _ask_for_plan(run: RunState, ports: Ports, messages: tuple[Message, ...], known: Plan) -> Plan:
    """The plan that the model answers with, on top of what is known already; it has a fault where none can be read."""
    shape = ProgramPlanAnswer if run.spec.mode is Mode.create else PlanAnswer
    said = await converse(
        ports.model,
        _asked(run, messages, shape),
        desk(run, ports),
        run.spec.looks,
        is_answer=lambda text: read_json(text, shape) is not None,
        note=lambda look, served: ports.note(look=look, served=served),
    )
    read = reader(said.ask, shape)

    async def attempt(answer: Answer) -> Reading[Plan]:
        reading = read(answer)
        if reading.value is None:
            return Reading(None, reading.error)
        found = reading.value
        kept = _subtasks(found)
        if kept.left_out:
            ports.note(not_shown=[f"criteria beyond the first {MOST_CRITERIA}: {kept.left_out}"])
        update = {"summary": clip(found.summary, 600), "subtasks": kept.subtasks}
        return await _with_packages(run, ports, known.model_copy(update=update), found)

    heard = await mend_tried(ports.model, said.ask, said.answer, attempt, note=json_note, repairs=REPAIRS)
    if heard.value is None:
        fault = clip(heard.fault or "the plan could not be read", 400)
        return known.model_copy(update={"fault": fault, "over_budget": heard.answer.fault is Fault.budget})
    return heard.value


async def _with_packages(run: RunState, ports: Ports, plan: Plan, answer: PlanAnswer | None = None) -> Reading[Plan]:
    """The plan with its packages installed, or waiting for approval; the error says which cannot be used, and why.

    Packages belong to the first plan: once tests exist, the program asks for more in its own manifest.
    """
    requests = plan.packages
    if isinstance(answer, ProgramPlanAnswer) and run.now.reproduce is None:
        named = (PackageRequest(name=item.name, reason=item.reason) for item in answer.packages)
        requests = readable_requests(named, language_of(run))
    names = tuple(request.name for request in requests)
    settled = await settle_packages(run, ports, names) if names else None
    plan = plan.model_copy(update={"packages": requests, "asks": "", "to_approve": ()})
    if settled is None:
        return Reading(plan)
    if settled.refused:
        return Reading(None, clip(f"these packages cannot be used: {' '.join(settled.refused)}", 600))
    if settled.asks:
        waiting = {name.partition(":")[2] for name in settled.names}
        listed = ", ".join(
            f"{request.name} ({request.reason})" if request.reason else request.name
            for request in requests
            if request.name in waiting
        )
        asks = clip(f"the plan needs packages that are not on your allow list: {listed}", 600)
        return Reading(plan.model_copy(update={"asks": asks, "to_approve": settled.names}))
    return Reading(plan.model_copy(update={"installed": keep_installed(ports, settled, names)}))


def _given(run: RunState) -> Plan | None:
    """The plan where it is not asked for: of a part of a larger program, and where the user's tests say it all.

    A small model is asked for none at all: it would break up what it could write at once.
    """
    spec, task = run.spec, run.spec.task_of(CreateTask)
    if spec.asks.brief and not spec.whole:
        return Plan(summary=clip(spec.goal, 600))
    if run.history or not (spec.whole or task.own_tests):
        return None
    parts = (Subtask(title=clip(spec.goal, 200), criteria=task.criteria),) if spec.whole else ()
    return Plan(summary=clip(spec.goal, 600), subtasks=parts)


class _Criteria(NamedTuple):
    subtasks: tuple[Subtask, ...]
    left_out: int
    """Criteria beyond what a run can carry."""


def _subtasks(found: PlanAnswer) -> _Criteria:
    """As far as there may be. What a model says of their order is taken where it names one of them, and not itself."""
    first = found.subtasks[:SUBTASKS]
    places = {one.title.strip().casefold(): place for place, one in enumerate(first, 1)}
    places |= {str(place): place for place in range(1, len(first) + 1)}
    room, made = CRITERIA_BYTES, list[Subtask]()
    for place, one in enumerate(first, 1):
        criteria = whole_criteria(one.criteria, room)
        room -= sum(len(criterion.encode()) for criterion in criteria)
        needs = tuple(sorted({places.get(_plain(each), place) for each in one.needs} - {place}))
        made.append(Subtask(title=clip(one.title, 200), criteria=criteria, needs=needs))
    given = sum(len(one.criteria) for one in first)
    return _Criteria(tuple(made), given - sum(len(one.criteria) for one in made))


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


async def _scope(run: RunState, ports: Ports) -> Plan:
    """What an audit looks at: everything, or what a model reads from the goal."""
    scan = run.spec.task_of(AuditTask).scan
    if not run.spec.goal or scan is None or not scan.review:
        return Plan(summary=run.spec.goal[:600])
    listed = "\n".join(ports.trees.files(run.ground)[:LISTED])
    messages = fitted(
        ports.note,
        "audit/plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal),
        files=section("Files", data("files", listed, 40_000)),
    )
    asked = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=run.spec.asks.answer(ANSWER))
    heard = await ask_for(ports.model, asked, ScopeAnswer)
    found = heard.value
    if found is None:
        fault = clip(heard.fault or "what to look at could not be read; everything is", 400)
        return Plan(fault=fault, over_budget=heard.answer.fault is Fault.budget)
    reviews = tuple(dict.fromkeys(one for one in found.reviews if one in ("sql", "code")))
    return Plan(
        summary=clip(found.summary, 600), reviews=reviews, files=tuple(clip(one, 200) for one in found.files[:50])
    )


async def _improvement(run: RunState, ports: Ports) -> Plan:
    """What to make better next: one thing that a test can tell of. The plan has a fault where nothing was found."""
    trees, ground = ports.trees, run.ground
    read = partial(trees.read, ground)
    reached = await _reached(run, ports)
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
    seen = tuple(one.pattern.id for one in reached)
    if found is None or not found.title.strip():
        fault = clip(heard.fault or "no improvement was named", 400)
        return Plan(patterns=seen, fault=fault, over_budget=heard.answer.fault is Fault.budget)
    kind = found.kind.strip().lower()
    named = kind if kind in KINDS else KINDS[-1]
    title = clip(" ".join(found.title.split()), 200)
    aim = Subtask(title=title, criteria=whole_criteria(found.criteria))
    return Plan(summary=f"{named}: {title}", subtasks=(aim,), patterns=seen)


def _code_to_judge(run: RunState, ports: Ports) -> Context:
    """The code that an improvement is chosen from: findings and what fits the goal first, other files each cycle."""
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
    sought = Question(cases=(), goal=f"{run.spec.goal}\n{run.spec.hint}", tests=(), is_test=is_test_path)
    fitting = [chunk.path for chunk in rank(sought, files, read, walk_search(files, read)).chunks]
    return survey(files, read, first=(*named, *fitting), turn=max(run.spec.errand, 1), budget=budget)


async def _recall(run: RunState, ports: Ports) -> tuple[Recalled, ...]:
    found = run.now.reproduce
    if found is None or found.report.signature is None:
        return ()
    return tuple(await ports.memory.recall(found.report.signature, tenant=run.spec.tenant, repo=run.spec.repo))


async def _reached(run: RunState, ports: Ports) -> tuple[RecalledPattern, ...]:
    """How goals like this run's were reached before; nothing for a part of a program, whose plan is the whole's.

    What other cycles of the same improvement did is told to each of them anyway.
    """
    spec = run.spec
    if spec.mode not in (Mode.create, Mode.improve) or spec.whole or not spec.goal.strip():
        return ()
    found = await ports.memory.patterns(spec.goal, tenant=spec.tenant, repo=spec.repo, limit=PATTERNS + 1)
    others = [one for one in found if not spec.errand or _parent(one) != spec.parent]
    return tuple(others[:PATTERNS])


def _parent(recalled: RecalledPattern) -> str:
    """The run that began the one which left it; empty where nobody but the user did."""
    return recalled.pattern.provenance.get("run", "").rpartition(".")[0]
