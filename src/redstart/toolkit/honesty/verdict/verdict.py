"""Judge a patch: compare test results with the baseline, by test ID."""

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
    unpatched: Sequence[Case] = (),
    unsteady: Collection[str] = (),
    unexplained: str = "",
    tampered: Sequence[str] = (),
    changed: Iterable[str] = (),
) -> Verdict:
    """Compare two runs of a suite.

    A target that could not be collected at the baseline has the ID of its file: it is fixed if tests of that file ran
    and none failed. A test that is new in `after` counts only if it fails. `repeats` are further runs of the targets,
    `unpatched` is a run without the patch; failures of the tests in `unsteady` do not count against the patch.
    `changed` are tests that were set aside and do not fail as before.
    """
    baseline = {case.id: case for case in before}
    current = {case.id: case for case in after}
    target_ids = set(targets)
    sorted_ids: dict[str, set[str]] = {kind: set() for kind in ("fixed", "red", "missing", "skipped", "worse")}
    children = _group_children(target_ids, after)
    for target in target_ids:
        sorted_ids[_classify_target(target, current, children)].add(target)
    for case in before:
        if case.id not in target_ids and (kind := _change(case, current)):
            sorted_ids[kind].add(case.id)
    for case in after:
        if (
            case.is_red
            and case.id not in baseline
            and not any(container in target_ids for container in list_containers(case.id))
        ):
            sorted_ids["worse"].add(case.id)
    return Verdict(
        fixed=Ids.from_ids(sorted_ids["fixed"]),
        still_red=Ids.from_ids(sorted_ids["red"]),
        newly_red=Ids.from_ids(sorted_ids["worse"] - set(unsteady)),
        missing=Ids.from_ids(sorted_ids["missing"]),
        newly_skipped=Ids.from_ids(sorted_ids["skipped"]),
        flaky=Ids.from_ids(
            id_ for run in repeats for id_ in sorted_ids["fixed"] - find_passing_targets(sorted_ids["fixed"], run)
        ),
        changed=Ids.from_ids(changed),
        green_without=Ids.from_ids(find_passing_targets(target_ids, unpatched)),
        tampered=tuple(tampered[:20]),
        unexplained=unexplained or _describe_missing_tests(before, after),
    )


def find_passing_targets(targets: Iterable[str], cases: Sequence[Case]) -> set[str]:
    """Return the targets that passed in a run."""
    target_ids = set(targets)
    current, children = {case.id: case for case in cases}, _group_children(target_ids, cases)
    return {target for target in target_ids if _classify_target(target, current, children) == "fixed"}


def _describe_missing_tests(before: Sequence[Case], after: Sequence[Case]) -> str:
    """Report a lower number of tests: two tests may share an ID, so one can vanish without a missing ID."""
    return f"{len(after)} tests ran where {len(before)} ran before" if len(after) < len(before) else ""


def _classify_target(target: str, current: dict[str, Case], children: dict[str, list[Case]]) -> str:
    if target in current:
        outcome = current[target].outcome
        if outcome is Outcome.passed:
            return "fixed"
        return "skipped" if outcome is Outcome.skipped else "red"
    inside = children.get(target, [])
    if any(case.is_red for case in inside):
        return "red"
    return "fixed" if any(case.outcome is Outcome.passed for case in inside) else "missing"


def _group_children(target_ids: set[str], cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Group the cases that belong to a target that is a whole file or module."""
    children: dict[str, list[Case]] = {}
    for case in cases:
        for container in list_containers(case.id):
            if container in target_ids:
                children.setdefault(container, []).append(case)
    return children


def list_containers(id_: str) -> Iterator[str]:
    """Yield every ID that could contain this one: a::b for a::b::c, and a.b for a.b.c."""
    for mark in _SEPARATORS:
        place = id_.find(mark)
        while place != -1:
            yield id_[:place]
            place = id_.find(mark, place + 1)


def _change(case: Case, current: dict[str, Case]) -> str:
    after = current.get(case.id)
    if after is None:
        return "" if case.is_red else "missing"
    if after.is_red:
        return "" if case.is_red else "worse"
    if after.outcome is Outcome.skipped and case.outcome is not Outcome.skipped:
        return "skipped"
    return ""


def find_tampered_paths(changed: Iterable[str], is_protected: Callable[[str], object]) -> tuple[str, ...]:
    """Return the changed paths that the patch must not change."""
    return tuple(sorted(path for path in changed if is_protected(path)))
