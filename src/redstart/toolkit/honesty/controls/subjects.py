"""The tests to alter: each target's function, its location, and its alterations by round."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind, Alterer
from redstart.toolkit.honesty.examination import CheckRuns, GreenPatch
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import find_case_language, find_file_language, is_test_path
from redstart.toolkit.suites.suite_directory import TreeView

MAX_ALTERATIONS = 12
"""The most alterations of one test, at any level."""
SAMPLE = 6
"""The most tests, besides the targets, that are altered too."""


class Subject(NamedTuple):
    """A test function or method with all its parameter sets."""

    id: str
    """The ID by which the runner selects it, without parameters."""
    ids: tuple[str, ...]
    """Its cases that passed on the patched code."""
    path: str
    """A path of the snapshot."""
    name: str
    text: bytes
    failed: int | None
    """The line of the file at which it failed on the original code; None if unknown."""
    is_target: bool
    alterer: Alterer
    alterations: tuple[Alteration, ...]

    @property
    def short(self) -> str:
        return re.split(r"::| > |\.", self.id)[-1] if not find_case_language(self.id) else self.id


class Subjects(NamedTuple):
    selected: tuple[Subject, ...]
    left_out: tuple[str, ...]
    """One sentence for each target that cannot be altered."""
    targets: int
    """The number of target IDs, including those that could not be altered."""


def get_alterer(path: str) -> Alterer | None:
    """Return the alterer for a test file; None for a language whose tests cannot be altered."""
    language = find_case_language(path)
    return language.alterer if language else None


def collect_subjects(patch: GreenPatch, runs: CheckRuns) -> Subjects:
    """Collect the targets, and a sample of the tests that reach the patched code, as they are on the patched code."""
    view = TreeView.open(patch.suite, runs, patch.patched)
    before = {case.id: case for case in patch.before}
    passed_ids = [case.id for case in patch.after if case.outcome == "passed"]
    target_ids = [id_ for id_ in passed_ids if is_chosen(id_, patch.targets)]
    chance = random.Random(patch.seed)  # noqa: S311 (not predictable is enough)
    nearby_ids = [
        id_
        for id_ in patch.nearby
        if id_ in set(passed_ids) - set(target_ids) and id_ in before and not before[id_].is_red
    ]
    sampled_ids = sorted(chance.sample(nearby_ids, min(SAMPLE, len(nearby_ids))))
    selected: list[Subject] = []
    left_out: list[str] = []
    for function, members in group_by_function((*target_ids, *sampled_ids)):
        is_target = members[0] in target_ids
        ids = tuple(id_ for id_ in members if id_ in target_ids) or members
        if not is_target and view.snapshot_paths.get(view.find_file(function)) in patch.changed:
            continue  # an example in a docstring, whose file is another one on the original code
        subject = _build_subject(view, function, ids, [before.get(id_) for id_ in ids], is_target=is_target)
        if isinstance(subject, Subject):
            selected.append(subject._replace(alterations=_draw_alterations(subject, chance)))
        elif is_target:
            left_out.append(subject)
    return Subjects(tuple(selected), tuple(left_out), len(target_ids))


def is_chosen(id_: str, targets: Sequence[str]) -> bool:
    return any(id_ == target or id_.startswith((f"{target}::", f"{target}.", f"{target} > ")) for target in targets)


def group_by_function(ids: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    groups: dict[str, list[str]] = {}
    for id_ in dict.fromkeys(ids):
        language = find_case_language(re.split("::| > ", id_)[0]) or Language
        groups.setdefault(language.case_mark.sub("", id_), []).append(id_)
    yield from ((function, tuple(members)) for function, members in groups.items())


def _build_subject(
    view: TreeView, function: str, ids: tuple[str, ...], baseline: Sequence[Case | None], *, is_target: bool
) -> Subject | str:
    shown_path = find_test_file(view, function)
    alterer = get_alterer(shown_path) if shown_path else None
    text = view.read(shown_path) if shown_path else None
    if alterer is None or text is None:
        return (
            f"{function}: it is not known in which file it is written"
            if not shown_path
            else f"{shown_path}: not altered"
        )
    name = name_in_file(function, shown_path)
    if inherited := _find_inherited_file(view, shown_path, name):
        shown_path, text = inherited, view.read(inherited) or b""
    lines = [(line, case) for case in baseline if case is not None and (line := find_failed_line(case, shown_path))]
    failed, failure = lines[0] if lines else (None, None)
    alterations = alterer.list_alterations(shown_path, text, name, failed, failure)
    if not alterations:
        return f"{function}: it has no assertion that can be altered"
    return Subject(
        function, ids, view.snapshot_paths[shown_path], name, text, failed, is_target, alterer, tuple(alterations)
    )


def find_test_file(view: TreeView, function: str) -> str:
    """Find a test's file. If the report names none, it is the only test file with a test of this class and name.

    Empty if there is none.
    """
    if shown_path := view.find_file(function):
        return shown_path
    owner, _, name = function.rpartition("::")
    candidates = [
        path
        for path in view.snapshot_paths
        if (language := _get_test_language(path)) and _contains(view, path, language.list_definition_texts(owner, name))
    ]
    return candidates[0] if len(candidates) == 1 else ""


def _find_inherited_file(view: TreeView, shown_path: str, name: str) -> str:
    """Find the only other test file that defines a test which a class of this file inherits; empty if there is none."""
    dotted_name, language = name.replace("::", "."), find_file_language(shown_path)
    definitions = language.list_definition_texts("", dotted_name.rpartition(".")[2]) if language else ()
    if "." not in dotted_name or not definitions or _contains(view, shown_path, definitions):
        return ""
    other_paths = (path for path in view.snapshot_paths if _get_test_language(path) is language)
    candidates = [path for path in other_paths if _contains(view, path, definitions)]
    return candidates[0] if len(candidates) == 1 else ""


def _get_test_language(path: str) -> Language | None:
    return find_file_language(path) if is_test_path(path) else None


def _contains(view: TreeView, path: str, definitions: Sequence[bytes]) -> bool:
    text = view.read(path) or b""
    return bool(definitions) and all(definition in text for definition in definitions)


def name_in_file(function: str, shown_path: str) -> str:
    """Return the part of a test's ID after its file: `TestA::test_b` or `TestA.test_b`."""
    name = function.removeprefix(shown_path).removeprefix("::").removeprefix(" > ")
    return name if name != function else function.removeprefix(shown_path.rpartition(".")[0].replace("/", ".") + ".")


def find_failed_line(case: Case, shown_path: str) -> int | None:
    """Return the innermost line of the test's own file in the runner's report of a failure; None if there is none."""
    if not case.is_red:
        return None
    lines = re.findall(rf"{re.escape(shown_path)}\"?(?::|, line )(\d+)", case.detail)
    if not lines:
        return None
    language = find_file_language(shown_path) or Language
    return int(lines[0] if language.deepest_first else lines[-1])


def _draw_alterations(subject: Subject, chance: random.Random) -> tuple[Alteration, ...]:
    """Draw alterations: first those of the failed line, its expectations first; then others in random order."""
    at_failure = [alteration for alteration in subject.alterations if alteration.line == subject.failed]
    rest = [alteration for alteration in subject.alterations if alteration.line != subject.failed]
    at_failure.sort(key=lambda alteration: _FIRST.index(alteration.kind))
    chance.shuffle(rest)
    rest.sort(key=lambda alteration: alteration.kind is AlterationKind.other)
    return tuple((*at_failure, *rest)[:MAX_ALTERATIONS])


_FIRST = (
    AlterationKind.former,
    AlterationKind.literal,
    AlterationKind.other,
    AlterationKind.inserted,
    AlterationKind.negated,
    AlterationKind.unrelated,
)
