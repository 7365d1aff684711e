"""Lessons in a run: which apply to it, and what one that was verified proposes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from redstart.core.learning import Signature
from redstart.core.lesson import LONGEST, PREFIX, Lesson, Offered, Placed, Provenance, Shown, Situation
from redstart.core.noun import clip
from redstart.core.report import Case
from redstart.core.run import RunState
from redstart.ports.bundle import Ports
from redstart.toolkit.base.code_files import Read
from redstart.toolkit.learning.lessons import applying, flipped

CASES = 3
"""Red tests whose words say what a run is about."""


async def taught(run: RunState, ports: Ports, red: Sequence[Case]) -> Shown | None:
    """The lessons that apply to this run, each shown or withheld by its coin; None where that was settled before.

    The coins fall once for a run, before the first question: what it is told later is not to depend on how it went.
    """
    if run.taught is not None:
        return None
    found = run.now.reproduce
    signature = found.report.signature if found else None
    words = [run.spec.goal, *(f"{case.id}\n{case.message}" for case in red[:CASES])]
    situation = Situation(
        tenant=run.spec.tenant,
        repo=run.spec.repo,
        family=signature.family if signature else "",
        text=clip("\n".join(filter(None, words)), 4000),
    )
    offered = await ports.lessons.offered(situation)
    changed = changes(offered, run.spec.repo, lambda path: ports.trees.read(run.ground, path))
    chosen = applying(offered.lessons, situation, offered.now, changed)
    return flipped(chosen, run.run_id, explore=run.spec.explore)


def changes(offered: Offered, repo: str, read: Read) -> dict[str, float]:
    """By a lesson's id, the share of its files that are other ones now. Of another repo's nothing is known."""
    told = [one for one in offered.lessons if one.files and one.provenance.repo == repo]
    return {
        one.id: sum(digest(read(path)) != known for path, known in one.files.items()) / len(one.files) for one in told
    }


def digest(text: bytes | None) -> str:
    return "" if text is None else hashlib.sha256(text).hexdigest()[:16]


async def proposed(run: RunState, ports: Ports, signature: Signature, when: str, advice: str) -> Placed:
    """What a verified run would teach the next one. What is too long is refused here: it could not be held."""
    when, advice = " ".join(when.split()), " ".join(advice.split())
    if not when and not advice:
        return Placed()
    if len(when) + len(advice) > LONGEST:
        return Placed(refused=(f"it is longer than {LONGEST} characters",))
    model = run.now.patch.model if run.now.patch else ""
    spec, made = run.spec, run.now.made
    of = Provenance(repo=spec.repo, commit=spec.base.tree, run=run.run_id, model=model, outcome="verified")
    files = run.now.patch.files if run.now.patch else ()
    lesson = Lesson(
        id=f"{PREFIX}{run.run_id}-{run.now.number}",
        when=when,
        advice=advice,
        family=signature.family,
        tenant=spec.tenant,
        repo=spec.repo,
        provenance=of,
        files={path: digest(ports.trees.read(made, path)) for path in files} if made else {},
        made_at=0.0,
    )
    return await ports.lessons.placed(lesson)
