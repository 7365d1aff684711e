"""What the next run should know: a card of a verified fix, maybe a lesson; a record of an attempt that stayed red."""

from __future__ import annotations

from redstart.core.chat import Ask, Tier
from redstart.core.learning import FailureRecord, FixCard, Remembered, Signature
from redstart.core.lesson import Placed
from redstart.core.noun import clip, one_line
from redstart.core.report import Judged
from redstart.core.run import Mode, RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.learning.advice import proposed
from redstart.toolkit.prompts import sections
from redstart.toolkit.prompts.asking import ask_for
from redstart.toolkit.prompts.fit import fitted
from redstart.toolkit.prompts.render import data, section
from redstart.toolkit.prompts.shapes import CardAnswer

ANSWER = 800
"""Tokens of an answer."""


async def remember(run: RunState, ports: Ports) -> Remembered:
    tested, reproduced = run.now.test, run.now.reproduce
    signature = reproduced.report.signature if reproduced else None
    if tested is None or signature is None:
        return Remembered()
    if not tested.verdict.honest_green:
        return Remembered(failure=_failure(run, tested, signature))
    if run.spec.mode is not Mode.fix:
        return Remembered()
    said = await _ask_for_card(run, ports)
    placed = await proposed(run, ports, signature, said.when, said.advice) if said else Placed()
    card = _card(run, tested, signature, said)
    return Remembered(card=card, lesson=placed.lesson, lesson_refused=placed.refused)


def _failure(run: RunState, tested: Judged, signature: Signature) -> FailureRecord:
    cases = tested.report.cases
    return FailureRecord(
        id=f"{run.run_id}-{run.now.number}",
        error_signature=signature.key,
        family=signature.family,
        test_id=cases[0].id if cases else "",
        patch=run.now.patch.fingerprint if run.now.patch else "",
        what_failed=clip(cases[0].message if cases else tested.report.fault, 400),
        signature=signature,
        provenance=_provenance(run),
    )


def _provenance(run: RunState) -> dict[str, str]:
    model = run.now.patch.model if run.now.patch else ""
    return {"repo": run.spec.repo, "commit": run.spec.base.tree, "run": run.run_id, "model": model}


def _card(run: RunState, tested: Judged, signature: Signature, said: CardAnswer | None) -> FixCard:
    patch, verdict = run.now.patch, tested.verdict
    why = patch.why if patch else ""
    return FixCard(
        id=f"{run.run_id}-{run.now.number}",
        summary=_words(said.summary if said else why, 300),
        root_cause=_words(said.root_cause if said else why, 300),
        fix=_words(said.fix if said else why, 300),
        verification=f"{verdict.fixed.count} red tests green, {tested.report.counts.passed} passed, none worse",
        error_signature=signature.key,
        family=signature.family,
        files_changed=patch.files if patch else (),
        debug_steps=tuple(_words(step, 200) for step in said.debug_steps[:6]) if said else (),
        outcome="verified",
        provenance=_provenance(run),
        signature=signature,
        test_id=_first_red(run),
    )


def _words(text: str, limit: int) -> str:
    """Of a model: a card is read by people and by models, and both are to see the same."""
    return clip(one_line(text), limit)


def _first_red(run: RunState) -> str:
    cases = run.now.reproduce.report.cases if run.now.reproduce else ()
    return cases[0].id if cases else ""


async def _ask_for_card(run: RunState, ports: Ports) -> CardAnswer | None:
    found = run.now.reproduce
    cases = found.report.cases if found else ()
    diff = ports.blobs.get(run.now.diff).decode(errors="replace") if run.now.diff else ""
    messages = fitted(
        ports.note,
        "remember",
        run.spec.asks.room(ANSWER),
        failing=sections.failing(cases[:2], 0),
        fix=section("The fix", data("patch", diff, 6000)),
        tried=sections.tried(run.history, lambda one: ports.blobs.get(one).decode(errors="replace")),
    )
    asked = Ask(
        question="remember",
        tier=Tier.fast,
        messages=messages,
        max_tokens=run.spec.asks.answer(ANSWER),
    )
    return (await ask_for(ports.model, asked, CardAnswer)).value
