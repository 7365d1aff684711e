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


def summarize_artifact(artifact: BaseModel) -> Brief:
    summary: Brief
    match artifact:
        case ReproductionResult():
            summary = _summarize_reproduction(artifact)
        case Plan():
            summary = _summarize_plan(artifact)
        case Context():
            files: list[JsonValue] = [*dict.fromkeys(chunk.path for chunk in artifact.chunks)]
            summary = {"files": files, "left_out": artifact.left_out}
        case Findings():
            summary = {
                "findings": artifact.count,
                "fault": artifact.fault,
                "first": artifact.first[0].message if artifact.first else "",
            }
            if artifact.installed is not None:
                summary["installed"] = list[JsonValue](sorted(artifact.installed.locks))
            if artifact.packages:
                summary["packages"] = list[JsonValue](artifact.packages)
        case Patch():
            summary = {
                "files": list(artifact.files),
                "why": artifact.why,
                "fault": artifact.fault,
                "probe": bool(artifact.probe),
                "looks": artifact.looks,
            }
            summary |= _summarize_learning(artifact)
            if (entry := artifact.set_aside) is not None:
                ids: list[JsonValue] = [*entry.tests.first[:5]]
                summary["set_aside"] = {"tests": entry.tests.count, "first": ids, "reason": entry.reason}
        case ApplyResult():
            reasons: list[JsonValue] = [f"{reject.path}: {reject.reason}" for reject in artifact.rejects]
            summary = {
                "ok": artifact.ok,
                "refused": artifact.refused,
                "added": artifact.added,
                "removed": artifact.removed,
                "reasons": reasons,
            }
        case PatchTestResult():
            summary = _summarize_test(artifact)
        case Reflection():
            summary = _summarize_reflection(artifact)
        case NewMemories():
            summary = _summarize_memories(artifact)
        case Decision():
            summary = {
                "action": artifact.action.value,
                "reason": artifact.reason,
                "result": artifact.result.value if artifact.result else "",
                "next": artifact.next.value if artifact.next else "",
                "trend": artifact.trend.value if artifact.trend else "",
                "pattern": artifact.turn.pattern.value if artifact.turn else "",
                "strategy": artifact.turn.strategy.value if artifact.turn else "",
                "warning": artifact.warning,
            }
            if artifact.retry_base is not None:
                summary |= {"retry_base": artifact.retry_base.value, "retry_base_reason": artifact.retry_base_reason}
        case _:
            raise TypeError(f"no step gives a {type(artifact).__name__}")
    return summary


def _summarize_reflection(reflection: Reflection) -> Brief:
    """Summarize why an attempt failed; if no model was asked, only what failed."""
    summary: Brief = {"what_failed": reflection.what_failed}
    if reflection.explains:
        summary |= {"root_cause": reflection.root_cause, "try_next": reflection.try_next}
    return summary


def _summarize_learning(patch: Patch) -> Brief:
    """Summarize what the question showed from earlier runs, and the answer's reflection on the previous attempt."""
    summary: Brief = {"reflection": _summarize_reflection(patch.reflection)} if patch.reflection else {}
    if patch.recalled:
        summary["recalled"] = list[JsonValue](patch.recalled)
    if patch.failed_before:
        summary["failed_before"] = list[JsonValue](patch.failed_before)
    return summary


def _summarize_plan(plan: Plan) -> Brief:
    recalled_ids: list[JsonValue] = [item.card.id for item in plan.recalled]
    sources: list[JsonValue] = [item.source for item in plan.recalled]
    summary: Brief = {"summary": plan.summary, "recalled": recalled_ids, "sources": sources, "fault": plan.fault}
    if plan.taught is not None and plan.taught.coins:
        summary |= {"shown": list(plan.taught.shown), "withheld": list(plan.taught.withheld)}
    if plan.patterns:
        summary["patterns"] = list[JsonValue](plan.patterns)
    if plan.packages:
        summary["packages"] = [request.name for request in plan.packages]
    return summary


def _summarize_memories(memories: NewMemories) -> Brief:
    summary: Brief = {"card": memories.card.id if memories.card else "", "failure": memories.failure is not None}
    summary |= {"pattern": memories.pattern.id} if memories.pattern else {}
    if memories.lesson is not None:
        summary |= {"lesson": memories.lesson.id, "same_as": memories.lesson.same_as}
    if memories.lesson_refused:
        summary["lesson_refused"] = list(memories.lesson_refused)
    return summary


def _summarize_reproduction(reproduction: ReproductionResult) -> Brief:
    written_tests: Brief = {"written": reproduction.written} if reproduction.written else {}
    already_red: Brief = {"already_red": reproduction.already_red.count} if reproduction.already_red else {}
    return {
        **written_tests,
        **already_red,
        **_summarize_counts(reproduction.report.counts),
        "targets": list(reproduction.targets.first[:5]),
        "target_count": reproduction.targets.count,
        "trouble": reproduction.trouble.value,
        "grounds": list(reproduction.grounds[:3]),
        "flaky": list(reproduction.flaky[:3]),
        "forecast": reproduction.forecast,
        "sure": reproduction.sure,
        "sure_why": reproduction.sure_why,
        "remedy": reproduction.remedy if reproduction.trouble else "",
    }


def _summarize_test(test_result: PatchTestResult) -> Brief:
    verdict = test_result.verdict
    changed: Brief = {"set_aside_changed": verdict.changed.count} if verdict.changed else {}
    return {
        **changed,
        **_summarize_counts(test_result.report.counts),
        # All tests of a new program are new: the runner counted a file that it could not import as one failure.
        "fixed": test_result.report.counts.passed if test_result.mutants else verdict.fixed.count,
        "still_red": verdict.still_red.count,
        "newly_red": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "skipped_now": verdict.newly_skipped.count,
        "flaky": verdict.flaky.count,
        "green_without": verdict.green_without.count,
        "repeats": sum(repeat.patched for repeat in test_result.repeats),
        "shrunk": test_result.shrunk is not None,
        "dropped": test_result.dropped,
        "unsteady": list(test_result.unsteady.first[:3]),
        "honest_green": verdict.is_green,
        "probe": bool(test_result.probe),
    }


def _summarize_counts(counts: OutcomeCounts) -> Brief:
    return {"passed": counts.passed, "red": counts.red, "skipped": counts.skipped}
