"""Ask the strong tier for edits or a probe, and in the same call for a reflection on the previous attempt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from redstart.core.change import Edit, EditKind, EditList, FitCounts, Patch, PatchProblem, RejectedEdit
from redstart.core.chat import Answer, AnswerFault, Ask, Message, Tier
from redstart.core.context import Context
from redstart.core.course import Strategy
from redstart.core.learning import RecalledCard, Reflection
from redstart.core.noun import clip
from redstart.core.run import PROBES, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.base.text import data
from redstart.toolkit.honesty.verdict.baseline import red_cases
from redstart.toolkit.learning.failures import KnownOfFailure, recall_for_attempt
from redstart.toolkit.looking import probes
from redstart.toolkit.looking.converse import converse
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.patching.ladder import find_rejected, unchanged
from redstart.toolkit.patching.policy import protected
from redstart.toolkit.patching.reading.formats import best_form
from redstart.toolkit.patching.reading.parse import ParsedPatch, fingerprint, parse, paths
from redstart.toolkit.patching.reading.unnamed import given_back
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import ParsedAnswer, read_json, schema
from redstart.toolkit.prompts.asking import mend, repair_note
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.forms import brief_form, form_words, given_whole, often_rejected
from redstart.toolkit.prompts.projects import brief_answer_with_program, project
from redstart.toolkit.prompts.render import section
from redstart.toolkit.prompts.sections import learned, rejected, request_to_reflect, tried_before
from redstart.toolkit.prompts.shapes import PatchAnswer, ReflectingPatchAnswer

_FRESH = "They apply to the code as shown above, where none of the earlier edits has been made."
_DRAFT = "They apply to the code as shown above, where the last attempt's edits have been made."
_AGAIN_UNCHANGED = "Your last answer gave the file back as it was. Something in it must change to make the test pass."
ANSWER = 4096
"""Maximum tokens of an answer."""
OTHERWISE = 0.6
"""The temperature from the second attempt on: at 0, a model gives much the same wrong answer again."""
FREELY = 0.9
"""The temperature when another idea is asked for. A small model would get lost."""
_NO_PROBE = f"no more than {PROBES} probes are run: give edits"
_NO_LOOK = "the model asked for one more look instead of an answer, and none was left"


async def patch(run: RunState, ports: Ports) -> Patch:
    # This comes before any other recorded input: if a record differs, it and all later ones of the step are discarded.
    known = await recall_for_attempt(run, ports)
    form = _form(run, await ports.forms.tally(), partial(ports.trees.read, run.ground))
    messages = await _question(run, ports, form, known)
    said = await converse(
        ports.model,
        _asked(run, messages),
        desk(run, ports),
        run.spec.looks,
        is_answer=lambda text: bool(probes.find_probe(text) or _parsed(run, ports, text).edits),
        note=lambda look, served: ports.note(look=look, served=served),
    )
    heard = await mend(ports.model, said.ask, said.answer, partial(_usable, run, ports), note=repair_note, repairs=1)
    answer = heard.value or heard.answer
    shown = {
        "recalled": tuple(fix.card.id for fix in known.fixes),
        "failed_before": tuple(failure.record.id for failure in known.failures),
    }
    asked = {"looks": said.looks, "model": answer.model, "form": form}
    return _read(run, ports, answer).model_copy(update={**asked, **shown})


def _asked(run: RunState, messages: tuple[Message, ...]) -> Ask:
    asks = run.spec.asks
    return Ask(
        question="patch",
        tier=Tier.strong,
        messages=messages,
        max_tokens=asks.answer(ANSWER),
        temperature=_temperature(run),
        # A model that must follow a schema could not call a tool.
        shape=schema(_shape(run)) if _is_shaped(run) else None,
        stuck=run.taken(Strategy.stronger) > 0,
    )


def _is_again(run: RunState) -> bool:
    """Return whether there was an earlier attempt at the fix. Probes do not count."""
    return len(run.history) > run.probes


def _shape(run: RunState) -> type[PatchAnswer]:
    return ReflectingPatchAnswer if _is_again(run) and not run.spec.asks.brief else PatchAnswer


def _temperature(run: RunState) -> float:
    if not _is_again(run):
        return 0.0
    is_free = run.turn is not None and run.turn.strategy in (Strategy.hypothesis, Strategy.plan)
    return FREELY if is_free and not run.spec.asks.brief else OTHERWISE


def _form(run: RunState, counts: Mapping[EditKind, FitCounts], read: Callable[[str], bytes | None]) -> EditKind:
    """Choose the form that fits best. If its edits did not fit this run's files, choose another that the question can
    name."""
    given_up = {entry.seen.form for entry in run.history if entry.turn and entry.turn.strategy is Strategy.form} - {
        None
    }
    if given_up and (run.spec.asks.brief or _is_shaped(run)):
        given_up |= {EditKind.envelope, EditKind.diff} if _is_shaped(run) else {EditKind.envelope}
    without = [kind for kind in EditKind if kind in given_up]
    return best_form(counts, _longest(run, read), run.spec.asks.edits, without=without)


def _is_shaped(run: RunState) -> bool:
    # A small program is requested as one file: as a JSON string it would lose its line breaks.
    is_one_file = run.spec.asks.brief and run.spec.task.makes_program
    return run.spec.asks.shaped and not run.spec.looks and not is_one_file


def _parsed(run: RunState, ports: Ports, text: str) -> ParsedPatch:
    """Parse the edits of an answer if they change something: small models often return a file unchanged."""
    parsed = _said(run, ports, text)
    trees, ground = ports.trees, run.ground
    if parsed.edits:
        same = unchanged(parsed.edits, lambda path: trees.read(ground, path), trees.files(ground))
    else:
        same = given_back(text, _shown(run, ports))
    if not same:
        return parsed
    fault = (
        f"the answer gives {clip(', '.join(same), 200)} back as it was: "
        "something in it must change to make the failing test pass"
    )
    return parsed._replace(edits=(), fault=fault, unchanged=True)


def _said(run: RunState, ports: Ports, text: str) -> ParsedPatch:
    """Parse the answer in the requested schema, else in any known form."""
    said = read_json(text, ReflectingPatchAnswer) if _is_shaped(run) else None
    if said is None or not said.edits:
        return parse(text, _shown(run, ports))
    edits = tuple(
        Edit(
            kind=EditKind.block if edit.search.strip() else EditKind.whole,
            path=edit.path,
            search=edit.search,
            text=edit.text,
            number=number,
        )
        for number, edit in enumerate(said.edits, 1)
    )
    thought = Reflection(
        root_cause=clip(said.root_cause, 400),
        what_failed=clip(said.what_failed, 400),
        try_next=clip(said.try_next, 400),
    )
    reflection = None if thought == Reflection() else thought
    return ParsedPatch(edits, clip(said.why, 400), reflection, test_change=clip(said.test_change, 400))


def _shown(run: RunState, ports: Ports) -> dict[str, str]:
    """Read the files that were shown at least in part and that a patch may change."""
    paths = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    open_ones = (path for path in sorted(paths) if not protected(path, run.spec.guarded))
    return {path: (ports.trees.read(run.ground, path) or b"").decode(errors="replace") for path in open_ones}


def _usable(run: RunState, ports: Ports, answer: Answer) -> ParsedAnswer[Answer]:
    """Return the answer if it holds edits or a probe, else the reason why it is unusable."""
    parsed = _parsed(run, ports, answer.text)
    probe = probes.find_probe(answer.text) if run.spec.looks else None
    is_good = answer.fault is None and bool(parsed.edits or probe)
    return ParsedAnswer(answer if is_good else None, _NO_LOOK if answer.calls else parsed.fault)


async def _question(run: RunState, ports: Ports, asked: EditKind, known: KnownOfFailure) -> tuple[Message, ...]:
    said = await ports.person.said()
    room = run.spec.asks.room(ANSWER)
    new, brief = run.spec.task.makes_program, run.spec.asks.brief
    if brief:
        about = _brief_new(run, ports, said) if new else _brief(run, ports, asked, said)
    else:
        about = _whole(run, ports, asked, said)
    if not (brief and new):
        about["lessons"] = sections.lessons(_fixes(run, known)[: 1 if brief else None])
    about["failed"] = tried_before(known.failures[: 1 if brief else None], run.spec.repo)
    name = ("brief/create" if new else "brief/patch") if brief else "create/patch" if new else "patch"
    return fitted(ports.note, name, room, **about)


def _fixes(run: RunState, known: KnownOfFailure) -> tuple[RecalledCard, ...]:
    """List earlier fixes, each once: first those for the last failure, then those for the bug."""
    new = {fix.card.id for fix in known.fixes}
    planned = run.now.plan.recalled if run.now.plan else ()
    return (*known.fixes, *(item for item in planned if item.card.id not in new))


def _whole(run: RunState, ports: Ports, asked: EditKind, said: tuple[str, ...]) -> dict[str, str]:
    """Build the sections of the full question."""

    def read(path: str) -> bytes | None:
        return ports.trees.read(run.ground, path)

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    cases = red_cases(run, ports.blobs)
    asked_again = request_to_reflect(run.history, shaped=_is_shaped(run))
    again = [asked_again.format(where=_DRAFT if run.draft else _FRESH), sections.advice(run.turn)]
    misfits = often_rejected(run.history) if run.taken(Strategy.form) and not _is_shaped(run) else ()
    is_new = run.spec.task.makes_program
    about = {"package": project(run.spec, run.packages)} if is_new else {"notes": sections.notes(read)}
    return {
        "answer": form_words(asked, shaped=_is_shaped(run)),
        "goal": sections.goal(run.spec.goal, run.spec.whole),
        "hint": sections.hint(run.spec.hint, said),
        **about,
        "plan": sections.plan(run.now.plan),
        "failing": sections.failing(cases, len(cases)),
        "code": sections.code(run.now.retrieve, read),
        "findings": sections.findings(run.now.audit),
        "advice": sections.advised(run.taught),
        "tried": sections.tried(run.history, blob),
        "rejected": rejected(_misfits(run, ports)),
        "probed": sections.probed(run.history, blob),
        "looking": sections.looking(run.spec.looks, max(PROBES - run.probes, 0), probes.language_of(run.spec.suite)),
        "form": given_whole(misfits, read),
        "ask": section("Now", *again) if _is_again(run) else "",
    }


def _brief(run: RunState, ports: Ports, asked: EditKind, said: tuple[str, ...]) -> dict[str, str]:
    """Build the sections for a small model: the code that may change, the failures, and what was wrong so far."""
    shown = _shown(run, ports)
    context = run.now.retrieve or Context()
    chunks = tuple(chunk for chunk in context.chunks if chunk.path in shown)[: 1 + run.taken(Strategy.wider)]
    tried = sections.tried_briefly(run.history, lambda name: ports.blobs.get(name).decode(errors="replace"))
    return {
        "answer": brief_form(asked, chunks[0].path if chunks else "path/to/file.py", shaped=_is_shaped(run)),
        "goal": sections.goal(run.spec.goal),
        "hint": sections.hint(run.spec.hint, said),
        "code": sections.code(
            context.model_copy(update={"chunks": chunks}), lambda path: ports.trees.read(run.ground, path)
        ),
        "failing": sections.failing_briefly(red_cases(run, ports.blobs)),
        "advice": sections.advised(run.taught),
        "tried": tried,
        "rejected": rejected(_misfits(run, ports), shown=1),
        "ask": _otherwise(run, _once_more(run) or ("Give another fix than what was tried." if tried else "")),
    }


def _misfits(run: RunState, ports: Ports) -> tuple[RejectedEdit, ...]:
    """Find the edits of the last attempt that do not fit the current files."""
    last = next((attempt for attempt in reversed(run.history) if not attempt.probe), None)
    if last is None or not last.edits:
        return ()
    edits = EditList.model_validate_json(ports.blobs.get(last.edits)).edits
    return find_rejected(edits, partial(ports.trees.read, run.ground), ports.trees.files(run.ground))


def _otherwise(run: RunState, plain: str) -> str:
    """Tell a small model what to do differently, with the plan if one was made because the run went in circles."""
    planned = run.turn is not None and run.turn.strategy is Strategy.plan
    return "\n".join(filter(None, (sections.plan(run.now.plan) if planned else "", plain, sections.advice(run.turn))))


def _brief_new(run: RunState, ports: Ports, said: tuple[str, ...]) -> dict[str, str]:
    """Build the sections for a small model that writes a new program: its tests, and the code so far."""

    def shown(title: str, paths: Iterable[str]) -> str:
        texts = ((path, ports.trees.read(run.ground, path) or b"") for path in sorted(paths))
        return section(title, *(data(path, text.decode(errors="replace")) for path, text in texts))

    spec, found = run.spec, run.now.reproduce
    begun = ports.trees.files(run.ground) if run.draft else ()
    return {
        "answer": brief_answer_with_program(spec),
        "goal": sections.goal(spec.goal, spec.whole),
        "package": project(spec, run.packages),
        "hint": sections.hint(spec.hint, said),
        "tests": shown("The tests", found.tests if found else ()),
        "code": shown("The program so far", [path for path in begun if not protected(path, spec.guarded)]),
        "failing": sections.failing_briefly(red_cases(run, ports.blobs)) if begun else "",
        "tried": learned(run.history),
        "ask": _otherwise(run, _once_more(run) or ("Give another program than what was tried." if run.history else "")),
    }


def _once_more(run: RunState) -> str:
    """Tell a small model that its last attempt changed nothing; the list of tried patches does not show that."""
    return _AGAIN_UNCHANGED if run.history and run.history[-1].problem is PatchProblem.unchanged else ""


def _read(run: RunState, ports: Ports, answer: Answer) -> Patch:
    """Convert the answer to a patch: edits, else a probe if the run offers them, else nothing, with the reason."""
    said = ports.blobs.put(answer.text.encode())
    if answer.fault is AnswerFault.budget:
        fault = "the model was not asked, or not until it answered: this call is over budget"
        return Patch(answer=said, problem=PatchProblem.over_budget, fault=fault)
    if answer.fault is not None:
        return Patch(answer=said, fault=f"the model's answer could not be used: {answer.fault.value}")
    found = probes.find_probe(answer.text) if run.spec.looks else None
    parsed = _parsed(run, ports, found.rest if found else answer.text)
    if parsed.edits:
        return Patch(
            edits=ports.blobs.put(EditList(edits=parsed.edits).model_dump_json().encode()),
            answer=said,
            files=tuple(clip(path, 200) for path in paths(parsed.edits)[:20]),
            fingerprint=fingerprint(parsed.edits),
            why=parsed.why,
            test_change=parsed.test_change,
            reflection=parsed.reflection,
        )
    if found is None or run.probes >= PROBES:
        fault = _NO_PROBE if found else _NO_LOOK if answer.calls else parsed.fault
        problem = PatchProblem.unchanged if parsed.unchanged and fault == parsed.fault else None
        return Patch(answer=said, reflection=parsed.reflection, problem=problem, fault=fault)
    return Patch(
        probe=ports.blobs.put(found.probe.model_dump_json().encode()),
        answer=said,
        fingerprint=probes.fingerprint(found.probe),
        why=parsed.why,
        reflection=parsed.reflection,
    )


def _longest(run: RunState, read: Callable[[str], bytes | None]) -> int:
    """Return the number of lines of the longest file that is shown to the model, at least in part."""
    shown = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    return max((len((read(path) or b"").splitlines()) for path in shown), default=0)
