"""Asks the strong tier for edits or for a probe, and in the same call what it makes of the attempt before."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from redstart.core.change import EditList, Patch
from redstart.core.chat import Answer, Ask, Message, Tier
from redstart.core.noun import clip
from redstart.core.run import PROBES, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.looking import probes
from redstart.toolkit.looking.desk import desk
from redstart.toolkit.patching.formats import best_form
from redstart.toolkit.patching.parse import fingerprint, parse, paths
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.answers import Reading
from redstart.toolkit.prompts.asking import mend, repair_note
from redstart.toolkit.prompts.converse import converse
from redstart.toolkit.prompts.forms import form, often_rejected
from redstart.toolkit.prompts.render import render, section
from redstart.toolkit.retrieval.lexical import walk_search
from redstart.toolkit.suites.history import ask_git

_AGAIN = (
    "Before WHY, say in one line each, as `ROOT CAUSE:`, `WHAT FAILED:` and `TRY NEXT:`, what you make of the last "
    "attempt. Then give edits that differ from what was tried. {where}"
)
_FRESH = "They apply to the code as shown above, where none of the earlier edits has been made."
_DRAFT = "They apply to the code as shown above, where the last attempt's edits have been made."
_NO_PROBE = f"no more than {PROBES} probes are run: give edits"
_NO_LOOK = "the model asked for one more look instead of an answer, and none was left"


async def patch(run: RunState, ports: Ports) -> Patch:
    # Before anything else is heard: what is forgotten of a step's records are those after the one that differs.
    messages = await _question(run, ports)
    said = await converse(
        ports.model,
        Ask(question="patch", tier=Tier.strong, messages=messages),
        desk(run, ports, find=walk_search, ask_git=ask_git),
        run.spec.looks,
        is_answer=lambda text: bool(probes.find_probe(text) or parse(text).edits),
        note=lambda look, served: ports.note(look=look, served=served),
    )
    heard = await mend(ports.model, said.ask, said.answer, partial(_usable, run), note=repair_note, repairs=1)
    answer = heard.value or heard.answer
    return _read(run, ports, answer).model_copy(update={"looks": said.looks, "model": answer.model})


def _usable(run: RunState, answer: Answer) -> Reading[Answer]:
    """The answer where it holds something to do; else what it lacks."""
    parsed = parse(answer.text)
    probe = probes.find_probe(answer.text) if run.spec.looks else None
    is_good = answer.fault is None and bool(parsed.edits or probe)
    return Reading(answer if is_good else None, _NO_LOOK if answer.calls else parsed.fault)


async def _question(run: RunState, ports: Ports) -> tuple[Message, ...]:
    def read(path: str) -> bytes | None:
        return ports.trees.read(run.ground, path)

    def blob(name: str) -> str:
        return ports.blobs.get(name).decode(errors="replace")

    asked = best_form(await ports.forms.tally(), _longest(run, read))
    cases = red_cases(run, ports.blobs)
    again = _AGAIN.format(where=_DRAFT if run.draft else _FRESH)
    return render(
        "patch",
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        notes=sections.notes(read),
        plan=sections.plan(run.now.plan),
        failing=sections.failing(cases, len(cases)),
        code=sections.code(run.now.retrieve, read),
        findings=sections.findings(run.now.audit),
        lessons=sections.lessons(run.now.plan.recalled if run.now.plan else ()),
        tried=sections.tried(run.history, blob),
        probed=sections.probed(run.history, blob),
        looking=sections.looking(run.spec.looks, max(PROBES - run.probes, 0)),
        form=form(asked, often_rejected(run.history), read),
        ask=section("Now", again) if len(run.history) > run.probes else "",
    )


def _read(run: RunState, ports: Ports, answer: Answer) -> Patch:
    """What the answer proposes: edits, else a probe where those are offered, else nothing, and why."""
    said = ports.blobs.put(answer.text.encode())
    if answer.fault is not None:
        return Patch(answer=said, fault=f"the model's answer could not be used: {answer.fault.value}")
    found = probes.find_probe(answer.text) if run.spec.looks else None
    parsed = parse(found.rest if found else answer.text)
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
        return Patch(answer=said, reflection=parsed.reflection, fault=fault)
    return Patch(
        probe=ports.blobs.put(found.probe.model_dump_json().encode()),
        answer=said,
        fingerprint=probes.fingerprint(found.probe),
        why=parsed.why,
        reflection=parsed.reflection,
    )


def _longest(run: RunState, read: Callable[[str], bytes | None]) -> int:
    """Lines of the longest file of which the model is shown something."""
    shown = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    return max((len((read(path) or b"").splitlines()) for path in shown), default=0)
