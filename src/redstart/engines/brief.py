"""The summary of a finished step for the event stream: short, and the same each time it is built."""

from __future__ import annotations

from pydantic import BaseModel, JsonValue

from redstart.core.change import ApplyResult, Patch
from redstart.core.context import Context
from redstart.core.finding import Findings
from redstart.core.learning import NewMemories, Plan, Reflection
from redstart.core.report import OutcomeCounts, PatchTestResult, ReproductionResult
from redstart.core.run import Decision

Brief = dict[str, JsonValue]


def brief(artifact: BaseModel) -> Brief:
    told: Brief
    match artifact:
        case ReproductionResult():
            told = _reproduced(artifact)
        case Plan():
            told = _planned(artifact)
        case Context():
            files: list[JsonValue] = [*dict.fromkeys(chunk.path for chunk in artifact.chunks)]
            told = {"files": files, "left_out": artifact.left_out}
        case Findings():
            told = {
                "findings": artifact.count,
                "fault": artifact.fault,
                "first": artifact.first[0].message if artifact.first else "",
            }
            if artifact.installed is not None:
                told["installed"] = list[JsonValue](sorted(artifact.installed.locks))
            if artifact.packages:
                told["packages"] = list[JsonValue](artifact.packages)
        case Patch():
            told = {
                "files": list(artifact.files),
                "why": artifact.why,
                "fault": artifact.fault,
                "probe": bool(artifact.probe),
                "looks": artifact.looks,
            }
            told |= _learned(artifact)
        case ApplyResult():
            reasons: list[JsonValue] = [f"{reject.path}: {reject.reason}" for reject in artifact.rejects]
            told = {
                "ok": artifact.ok,
                "refused": artifact.refused,
                "added": artifact.added,
                "removed": artifact.removed,
                "reasons": reasons,
            }
        case PatchTestResult():
            told = _judged(artifact)
        case Reflection():
            told = _reflection(artifact)
        case NewMemories():
            told = _remembered(artifact)
        case Decision():
            told = {
                "action": artifact.action.value,
                "reason": artifact.reason,
                "result": artifact.result.value if artifact.result else "",
                "next": artifact.next.value if artifact.next else "",
                "trend": artifact.trend.value if artifact.trend else "",
                "pattern": artifact.turn.pattern.value if artifact.turn else "",
                "strategy": artifact.turn.strategy.value if artifact.turn else "",
                "warning": artifact.warning,
            }
        case _:
            raise TypeError(f"no step gives a {type(artifact).__name__}")
    return told


def _reflection(reflection: Reflection) -> Brief:
    """Summarize why an attempt failed; if no model was asked, only what failed."""
    told: Brief = {"what_failed": reflection.what_failed}
    if reflection.explains:
        told |= {"root_cause": reflection.root_cause, "try_next": reflection.try_next}
    return told


def _learned(patch: Patch) -> Brief:
    """Summarize what the question showed from earlier runs, and the answer's reflection on the previous attempt."""
    told: Brief = {"reflection": _reflection(patch.reflection)} if patch.reflection else {}
    if patch.recalled:
        told["recalled"] = list[JsonValue](patch.recalled)
    if patch.failed_before:
        told["failed_before"] = list[JsonValue](patch.failed_before)
    return told


def _planned(plan: Plan) -> Brief:
    recalled: list[JsonValue] = [item.card.id for item in plan.recalled]
    sources: list[JsonValue] = [item.source for item in plan.recalled]
    told: Brief = {"summary": plan.summary, "recalled": recalled, "sources": sources, "fault": plan.fault}
    if plan.taught is not None and plan.taught.coins:
        told |= {"shown": list(plan.taught.shown), "withheld": list(plan.taught.withheld)}
    if plan.patterns:
        told["patterns"] = list[JsonValue](plan.patterns)
    if plan.packages:
        told["packages"] = [request.name for request in plan.packages]
    return told


def _remembered(left: NewMemories) -> Brief:
    told: Brief = {"card": left.card.id if left.card else "", "failure": left.failure is not None}
    told |= {"pattern": left.pattern.id} if left.pattern else {}
    if left.lesson is not None:
        told |= {"lesson": left.lesson.id, "same_as": left.lesson.same_as}
    if left.lesson_refused:
        told["lesson_refused"] = list(left.lesson_refused)
    return told


def _reproduced(found: ReproductionResult) -> Brief:
    written: Brief = {"written": found.written} if found.written else {}
    return {
        **written,
        **_counts(found.report.counts),
        "targets": list(found.targets.first[:5]),
        "target_count": found.targets.count,
        "trouble": found.trouble.value,
        "grounds": list(found.grounds[:3]),
        "flaky": list(found.flaky[:3]),
        "forecast": found.forecast,
        "sure": found.sure,
        "sure_why": found.sure_why,
        "remedy": found.remedy if found.trouble else "",
    }


def _judged(judged: PatchTestResult) -> Brief:
    verdict = judged.verdict
    return {
        **_counts(judged.report.counts),
        # All tests of a new program are new: the runner counted a file that it could not import as one failure.
        "fixed": judged.report.counts.passed if judged.mutants else verdict.fixed.count,
        "still_red": verdict.still_red.count,
        "newly_red": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "skipped_now": verdict.newly_skipped.count,
        "flaky": verdict.flaky.count,
        "green_without": verdict.green_without.count,
        "repeats": sum(repeat.patched for repeat in judged.repeats),
        "shrunk": judged.shrunk is not None,
        "unsteady": list(judged.unsteady.first[:3]),
        "honest_green": verdict.honest_green,
        "probe": bool(judged.probe),
    }


def _counts(counts: OutcomeCounts) -> Brief:
    return {"passed": counts.passed, "red": counts.red, "skipped": counts.skipped}
