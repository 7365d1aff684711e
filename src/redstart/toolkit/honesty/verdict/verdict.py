"""Judges a patch: compares test results with the baseline, by test ID."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from redstart.core.report import Case, Ids, Outcome, Verdict

_SEPARATORS = ("::", ".")


def judge(
    before: Sequence[Case],
    after: Sequence[Case],
    targets: Iterable[str],
    *,
    repeats: Sequence[Sequence[Case]] = (),
    without: Sequence[Case] = (),
    unsteady: Collection[str] = (),
    unexplained: str = "",
    tampered: Sequence[str] = (),
) -> Verdict:
    """Compare two runs of a suite.

    A target that could not be collected at the baseline has the ID of its file: it is fixed if tests of that file ran
    and none failed. A test that is new in `after` counts only if it fails. `repeats` are further runs of the targets,
    `without` is a run without the patch; failures of the tests in `unsteady` do not count against the patch.
    """
    was = {case.id: case for case in before}
    now = {case.id: case for case in after}
    wanted = set(targets)
    sorted_ids: dict[str, set[str]] = {kind: set() for kind in ("fixed", "red", "missing", "skipped", "worse")}
    children = _children(wanted, after)
    for target in wanted:
        sorted_ids[_fate(target, now, children)].add(target)
    for case in before:
        if case.id not in wanted and (kind := _change(case, now)):
            sorted_ids[kind].add(case.id)
    for case in after:
        if case.red and case.id not in was and not any(container in wanted for container in _containers(case.id)):
            sorted_ids["worse"].add(case.id)
    return Verdict(
        fixed=Ids.of(sorted_ids["fixed"]),
        still_red=Ids.of(sorted_ids["red"]),
        newly_red=Ids.of(sorted_ids["worse"] - set(unsteady)),
        missing=Ids.of(sorted_ids["missing"]),
        newly_skipped=Ids.of(sorted_ids["skipped"]),
        flaky=Ids.of(id_ for run in repeats for id_ in sorted_ids["fixed"] - green_among(sorted_ids["fixed"], run)),
        green_without=Ids.of(green_among(wanted, without)),
        tampered=tuple(tampered[:20]),
        unexplained=unexplained or _fewer(before, after),
    )


def green_among(targets: Iterable[str], cases: Sequence[Case]) -> set[str]:
    """Return the targets that passed in a run."""
    wanted = set(targets)
    now, children = {case.id: case for case in cases}, _children(wanted, cases)
    return {target for target in wanted if _fate(target, now, children) == "fixed"}


def _fewer(before: Sequence[Case], after: Sequence[Case]) -> str:
    """Report a lower number of tests: two tests may share an ID, so one can vanish without a missing ID."""
    return f"{len(after)} tests ran where {len(before)} ran before" if len(after) < len(before) else ""


def _fate(target: str, now: dict[str, Case], children: dict[str, list[Case]]) -> str:
    if target in now:
        outcome = now[target].outcome
        if outcome is Outcome.passed:
            return "fixed"
        return "skipped" if outcome is Outcome.skipped else "red"
    inside = children.get(target, [])
    if any(case.red for case in inside):
        return "red"
    return "fixed" if any(case.outcome is Outcome.passed for case in inside) else "missing"


def _children(wanted: set[str], cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Group the cases that belong to a target that is a whole file or module."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        for container in _containers(case.id):
            if container in wanted:
                found.setdefault(container, []).append(case)
    return found


def _containers(id_: str) -> Iterator[str]:
    """Yield every ID that could contain this one: a::b for a::b::c, and a.b for a.b.c."""
    for mark in _SEPARATORS:
        place = id_.find(mark)
        while place != -1:
            yield id_[:place]
            place = id_.find(mark, place + 1)


def _change(case: Case, now: dict[str, Case]) -> str:
    after = now.get(case.id)
    if after is None:
        return "" if case.red else "missing"
    if after.red:
        return "" if case.red else "worse"
    if after.outcome is Outcome.skipped and case.outcome is not Outcome.skipped:
        return "skipped"
    return ""


def tampered(changed: Iterable[str], protected: Callable[[str], object]) -> tuple[str, ...]:
    """Return the changed paths that the patch must not change."""
    return tuple(sorted(path for path in changed if protected(path)))
