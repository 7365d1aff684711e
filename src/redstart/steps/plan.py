"""Recalls what is known of this failure, and says what to do where that is not plain: for a goal, or when stuck."""

from __future__ import annotations

import re
from functools import partial

from redstart.core.chat import Ask, Message, Tier
from redstart.core.course import Strategy
from redstart.core.learning import Plan, Recalled, Subtask
from redstart.core.noun import clip
from redstart.core.pattern import RecalledPattern
from redstart.core.run import Effort, Mode, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.learning.advice import taught
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.looking.files import Files
from redstart.toolkit.looking.outline import outline
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import read_json, schema
from redstart.toolkit.prompts.asking import REPAIRS, ask_for, json_note, mend, reader
from redstart.toolkit.prompts.converse import converse
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.projects import project
from redstart.toolkit.prompts.render import data, section
from redstart.toolkit.prompts.shapes import ImprovementAnswer, PlanAnswer
from redstart.toolkit.prompts.shapes_audit import ScopeAnswer
from redstart.toolkit.retrieval.lexical import walk_search
from redstart.toolkit.suites.detect import is_test_path
from redstart.toolkit.suites.history import ask_git

ANSWER = 1500
"""Tokens of an answer."""
KINDS = ("bug", "robustness", "feature")
"""What an improvement can be."""
OUTLINE = 12_000
"""Characters of what a program looks like, for one who is to improve it."""
LISTED = 2000
"""Files that are listed to a model that chooses among them."""
SUBTASKS = 8
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
    recalled = await _recall(run, ports)
    cases = red_cases(run, ports.blobs)
    told = await taught(run, ports, cases)
    stuck = bool(run.history)
    # The red test of an issue says what to do; a goal alone does not.
    plain = run.spec.issue or not run.spec.goal
    if plain and not stuck and run.spec.effort is not Effort.full:
        return Plan(recalled=recalled, taught=told)

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    is_new = run.spec.mode is Mode.create
    notes = sections.notes(partial(ports.trees.read, run.ground))
    reached = await _reached(run, ports)
    about = {"package": project(run.spec), "patterns": sections.patterns(reached)} if is_new else {"notes": notes}
    messages = fitted(
        ports.note,
        "create/plan" if is_new else "plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal, run.spec.whole),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        **about,
        failing=sections.failing(cases, len(cases)),
        advice=sections.advised(told or run.taught),
        tried=sections.tried(run.history, blob),
        probed=sections.probed(run.history, blob),
        looking=sections.looking(run.spec.looks),
        ask=section("Now", "The last attempts went in circles: plan something else.") if stuck else "",
    )
    said = await converse(
        ports.model,
        _asked(run, messages),
        desk(run, ports, find=walk_search, ask_git=ask_git),
        run.spec.looks,
        is_answer=lambda text: read_json(text, PlanAnswer) is not None,
        note=lambda look, served: ports.note(look=look, served=served),
    )
    read = reader(said.ask, PlanAnswer)
    heard = await mend(ports.model, said.ask, said.answer, read, note=json_note, repairs=REPAIRS)
    found = heard.value
    known = Plan(recalled=recalled, taught=told, patterns=tuple(one.pattern.id for one in reached))
    if found is None:
        return known.model_copy(update={"fault": clip(heard.fault or "the plan could not be read", 400)})
    return known.model_copy(update={"summary": clip(found.summary, 600), "subtasks": _subtasks(found)})


def _given(run: RunState) -> Plan | None:
    """The plan where it is not asked for: of a part of a larger program, and where the user's tests say it all.

    A small model is asked for none at all: it would break up what it could write at once.
    """
    spec = run.spec
    if spec.asks.brief and not spec.whole:
        return Plan(summary=clip(spec.goal, 600))
    if run.history or not (spec.whole or spec.own_tests):
        return None
    parts = (Subtask(title=clip(spec.goal, 200), criteria=spec.criteria),) if spec.whole else ()
    return Plan(summary=clip(spec.goal, 600), subtasks=parts)


def _subtasks(found: PlanAnswer) -> tuple[Subtask, ...]:
    """As far as there may be. What a model says of their order is taken where it names one of them, and not itself."""
    first = found.subtasks[:SUBTASKS]
    places = {one.title.strip().casefold(): place for place, one in enumerate(first, 1)}
    places |= {str(place): place for place in range(1, len(first) + 1)}
    return tuple(
        Subtask(
            title=clip(one.title, 200),
            criteria=tuple(clip(each, 200) for each in one.criteria[:8]),
            needs=tuple(sorted({places.get(_plain(each), place) for each in one.needs} - {place})),
        )
        for place, one in enumerate(first, 1)
    )


def _plain(need: str) -> str:
    """`1` for `subtask 1` and `#1` too."""
    words = need.strip().casefold()
    return number[1] if (number := _NUMBERED.fullmatch(words)) else words


def _asked(run: RunState, messages: tuple[Message, ...]) -> Ask:
    """A model that is held to the answer's shape could not write a call of a look."""
    return Ask(
        question="plan",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
        shape=None if run.spec.looks else schema(PlanAnswer),
        # Who goes in circles is not led out of them by the model that led there.
        stuck=run.turn is not None and run.turn.strategy is Strategy.plan,
    )


async def _scope(run: RunState, ports: Ports) -> Plan:
    """What an audit looks at: everything, or what a model reads from the goal."""
    scan = run.spec.scan
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
        return Plan(fault=clip(heard.fault or "what to look at could not be read; everything is", 400))
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
    messages = fitted(
        ports.note,
        "improve/plan",
        run.spec.asks.room(ANSWER),
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        patterns=sections.patterns(reached),
        notes=sections.notes(read),
        files=section("Files", data("files", shown, OUTLINE * 2)),
        findings=sections.findings(run.now.audit),
        before=section("Done before", data("cycles", "\n".join(run.spec.before), 4000)) if run.spec.before else "",
    )
    most = run.spec.asks.answer(ANSWER)
    asked = Ask(question="plan", tier=Tier.fast, messages=messages, max_tokens=most)
    heard = await ask_for(ports.model, asked, ImprovementAnswer)
    found = heard.value
    seen = tuple(one.pattern.id for one in reached)
    if found is None or not found.title.strip():
        return Plan(patterns=seen, fault=clip(heard.fault or "no improvement was named", 400))
    kind = found.kind.strip().lower()
    named = kind if kind in KINDS else KINDS[-1]
    title = clip(" ".join(found.title.split()), 200)
    aim = Subtask(title=title, criteria=tuple(clip(each, 200) for each in found.criteria[:8]))
    return Plan(summary=f"{named}: {title}", subtasks=(aim,), patterns=seen)


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
