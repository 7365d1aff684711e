"""What was checked of a patch, in words of our own: no text of the repo or of a model gets into them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from redstart.app.proof.schema import Check, CheckName, Found, Mark, Shrunk, Touched
from redstart.core.noun import many
from redstart.core.report import Counts, Judged, Verdict
from redstart.core.run import RunState
from redstart.toolkit.honesty.verdict.levels import MEASURES

NOT_TESTED = "the last patch was not tested"


class Facts(NamedTuple):
    """What the checks are read from. `judged` is None where the last patch was not tested."""

    state: RunState
    targets: int
    judged: Judged | None
    files: tuple[Touched, ...]
    found: Found
    serious: int
    """New findings that a patch may not bring, tripwires apart."""
    shrunk: Shrunk
    green: bool
    """Whether the run is verified, by its tests alone."""

    @property
    def verdict(self) -> Verdict:
        return self.judged.verdict if self.judged else Verdict()


def checks(facts: Facts) -> tuple[Check, ...]:
    """One of each name, in the order in which they are shown."""
    return (
        _targets(facts),
        _others(facts),
        _repeats(facts),
        _red_without(facts),
        _examined(facts, CheckName.able_to_fail, "control", "failed when altered"),
        _examined(facts, CheckName.neutral, "neutral", "passed in surroundings that look like production"),
        _untouched(facts),
        _no_cheat(facts),
        _findings(facts),
        _shrunk(facts),
    )


def _targets(facts: Facts) -> Check:
    if facts.judged is None:
        return _not_done(CheckName.targets, NOT_TESTED)
    fixed = facts.verdict.fixed.count
    return _check(CheckName.targets, fixed == facts.targets > 0, f"{fixed:,} of {facts.targets:,}")


def _others(facts: Facts) -> Check:
    judged, found, verdict = facts.judged, facts.state.now.reproduce, facts.verdict
    if judged is None or found is None:
        return _not_done(CheckName.others, NOT_TESTED)
    counted = {
        "newly red": verdict.newly_red.count,
        "missing": verdict.missing.count,
        "newly skipped": verdict.newly_skipped.count,
    }
    worse = [f"{count:,} {what}" for what, count in counted.items() if count]
    worse += ["the exit code and the results contradict each other"] if verdict.unexplained else []
    was, now = found.report.counts, judged.report.counts
    if not (worse or facts.green) and now.total < was.total:
        return _not_done(CheckName.others, f"only {now.total:,} of {was.total:,} tests were run on it")
    said = f"before: {_counted(was)}; after: {_counted(now)}"
    return _check(CheckName.others, not worse, "; ".join((said, *worse)))


def _repeats(facts: Facts) -> Check:
    after = [one for one in (facts.judged.repeats if facts.judged else ()) if one.patched]
    if not after:
        return _not_done(CheckName.repeats, _why_not(facts, bool(MEASURES[facts.state.spec.verify].after)))
    steady = not any(one.red for one in after) and not facts.verdict.flaky
    varied = ", ".join(_times(one.varied or "nothing" for one in after))
    ended = "green every time" if steady else f"{many(facts.verdict.flaky.count, 'test')} not green every time"
    said = f"{many(len(after), 'repeat')}, each with one thing other ({varied}): {ended}"
    before = facts.state.now.reproduce.repeats if facts.state.now.reproduce else ()
    red = "red every time" if not any(one.green for one in before) else "flaky tests were set aside"
    return _check(CheckName.repeats, steady, f"{said}; before the patch {len(before)}: {red}" if before else said)


def _red_without(facts: Facts) -> Check:
    bare = [one for one in (facts.judged.repeats if facts.judged else ()) if not one.patched]
    if not bare:
        return _not_done(CheckName.red_without, _why_not(facts, MEASURES[facts.state.spec.verify].fail_again))
    red = min(one.red for one in bare)
    passed = red == facts.targets and not facts.verdict.green_without
    return _check(CheckName.red_without, passed, f"{red:,} of {facts.targets:,} red on the code without it")


def _examined(facts: Facts, name: CheckName, check: str, words: str) -> Check:
    """What a check of a green covered. Where it refused the patch, the reason is among what speaks against it."""
    results = [one for one in (facts.judged.evidence if facts.judged else ()) if one.check == check]
    if not results:
        return _not_done(name, _why_not(facts, True))
    result = results[-1]
    said = f"{result.covered:,} of {result.targets:,} {words}, {many(result.runs, 'run')}"
    if facts.verdict.refuted and facts.judged is not None and facts.judged.evidence[-1] is result:
        return _check(name, False, said)
    return _check(name, True, said) if result.covered else _not_done(name, said)


def _untouched(facts: Facts) -> Check:
    theirs = sum(bool(one.protected) for one in facts.files)
    if facts.state.now.made is None and not theirs:
        return _not_done(CheckName.untouched, "no file was changed")
    which = f"{theirs} of them" if theirs else "none of them"
    files = many(len(facts.files), "file")
    return _check(CheckName.untouched, not theirs, f"{files} in the patch, {which} a test or part of how tests are run")


def _no_cheat(facts: Facts) -> Check:
    if facts.found.new is None:
        return _not_done(CheckName.no_cheat, "the last patch was not checked")
    signs = facts.found.tripwires
    return _check(CheckName.no_cheat, not signs, f"{many(signs, 'sign')} of it" if signs else "no sign of it")


def _findings(facts: Facts) -> Check:
    found = facts.found
    if found.new is None:
        return _not_done(CheckName.findings, "the last patch was not checked")
    new, serious = found.new - found.tripwires, facts.serious
    before = "" if found.before is None else f"{found.before:,} before in the same files, "
    minor = f", {new - serious:,} of them minor" if new > serious else ""
    return _check(CheckName.findings, not serious, f"{before}{new:,} new{minor}")


def _shrunk(facts: Facts) -> Check:
    tried = bool(MEASURES[facts.state.spec.verify].shrink_runs)
    if facts.state.spec.task.makes_program:
        return _not_done(CheckName.shrunk, "a new program is kept whole")
    if not (tried and (facts.green or facts.shrunk.done)):
        return _not_done(CheckName.shrunk, _why_not(facts, tried))
    cut = facts.shrunk
    if not cut.done:
        return _check(CheckName.shrunk, True, "tried; nothing could be left out")
    left = f"{many(cut.hunks_dropped, 'hunk')} left out" if cut.hunks_dropped else "made smaller"
    sizes = f"+{cut.proposed.added} -{cut.proposed.removed} proposed, +{cut.kept.added} -{cut.kept.removed} kept"
    return _check(CheckName.shrunk, True, f"{left}: {sizes}")


def _why_not(facts: Facts, asked: bool) -> str:
    return "done only for a patch that is green" if asked else f"not part of level {facts.state.spec.verify.value}"


def _check(name: CheckName, passed: bool, said: str) -> Check:
    return Check(name=name, mark=Mark.passed if passed else Mark.failed, said=said)


def _not_done(name: CheckName, why: str) -> Check:
    return Check(name=name, mark=Mark.not_done, said=why)


def _counted(counts: Counts) -> str:
    return f"{counts.passed:,} passed, {counts.red:,} red, {counts.skipped:,} skipped"


def _times(varied: Iterable[str]) -> list[str]:
    return [what if count == 1 else f"{what} {count} times" for what, count in Counter(varied).items()]
