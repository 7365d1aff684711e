"""Asks the strong tier for edits, and in the same call what it makes of the attempt before."""

from __future__ import annotations

from collections.abc import Callable

from redstart.core.change import EditList, Patch
from redstart.core.chat import Ask, Tier
from redstart.core.noun import clip
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.honesty.baseline import red_cases
from redstart.toolkit.patching.formats import best_form
from redstart.toolkit.patching.parse import fingerprint, parse, paths
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.forms import form, often_rejected
from redstart.toolkit.prompts.render import render, section

_AGAIN = (
    "Before WHY, say in one line each, as `ROOT CAUSE:`, `WHAT FAILED:` and `TRY NEXT:`, what you make of the last "
    "attempt. Then give edits that differ from what was tried. {where}"
)
_FRESH = "They apply to the code as shown above, where none of the earlier edits has been made."
_DRAFT = "They apply to the code as shown above, where the last attempt's edits have been made."


async def patch(run: RunState, ports: Ports) -> Patch:
    def read(path: str) -> bytes | None:
        return ports.trees.read(run.ground, path)

    # Before anything else is heard: what is forgotten of a step's records are those after the one that differs.
    asked = best_form(await ports.forms.tally(), _longest(run, read))
    cases = red_cases(run, ports.blobs)
    again = _AGAIN.format(where=_DRAFT if run.draft else _FRESH)
    messages = render(
        "patch",
        goal=sections.goal(run.spec.goal),
        hint=sections.hint(run.spec.hint, await ports.person.said()),
        notes=sections.notes(read),
        plan=sections.plan(run.now.plan),
        failing=sections.failing(cases, len(cases)),
        code=sections.code(run.now.retrieve, read),
        findings=sections.findings(run.now.audit),
        lessons=sections.lessons(run.now.plan.recalled if run.now.plan else ()),
        tried=sections.tried(run.history, lambda diff: ports.blobs.get(diff).decode(errors="replace")),
        form=form(asked, often_rejected(run.history), read),
        ask=section("Now", again) if run.history else "",
    )
    answer = await ports.model.ask(Ask(question="patch", tier=Tier.strong, messages=messages))
    said = ports.blobs.put(answer.text.encode())
    if answer.fault is not None:
        return Patch(
            answer=said, model=answer.model, fault=f"the model's answer could not be used: {answer.fault.value}"
        )
    parsed = parse(answer.text)
    if not parsed.edits:
        return Patch(answer=said, model=answer.model, reflection=parsed.reflection, fault=parsed.fault)
    return Patch(
        edits=ports.blobs.put(EditList(edits=parsed.edits).model_dump_json().encode()),
        answer=said,
        model=answer.model,
        files=tuple(clip(path, 200) for path in paths(parsed.edits)[:20]),
        fingerprint=fingerprint(parsed.edits),
        why=parsed.why,
        test_change=parsed.test_change,
        reflection=parsed.reflection,
    )


def _longest(run: RunState, read: Callable[[str], bytes | None]) -> int:
    """Lines of the longest file of which the model is shown something."""
    shown = {chunk.path for chunk in run.now.retrieve.chunks} if run.now.retrieve else set[str]()
    return max((len((read(path) or b"").splitlines()) for path in shown), default=0)
