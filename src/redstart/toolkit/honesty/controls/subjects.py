"""The tests to alter: each target's function, its location, and its alterations by round."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from redstart.core.report import Case
from redstart.toolkit.honesty.controls.alteration import Alteration, AlterationKind, Alterer
from redstart.toolkit.honesty.examine import CheckRuns, GreenPatch
from redstart.toolkit.languages.protocol import Language
from redstart.toolkit.languages.registry import is_test_path, language_of_cases, language_of_file
from redstart.toolkit.suites.view import TreeView

MOST = 12
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
        return re.split(r"::| > |\.", self.id)[-1] if not language_of_cases(self.id) else self.id


class Subjects(NamedTuple):
    chosen: tuple[Subject, ...]
    left_out: tuple[str, ...]
    """One sentence for each target that cannot be altered."""
    targets: int
    """The number of target IDs, including those that could not be altered."""


def alterer_for(path: str) -> Alterer | None:
    """Return the alterer for a test file; None for a language whose tests cannot be altered."""
    language = language_of_cases(path)
    return language.alterer if language else None


def subjects(green: GreenPatch, runs: CheckRuns) -> Subjects:
    """Collect the targets, and a sample of the tests that reach the patched code, as they are on the patched code."""
    view = TreeView(green.suite, runs.files(green.patched), partial(runs.read, green.patched))
    before = {case.id: case for case in green.before}
    passed = [case.id for case in green.after if case.outcome == "passed"]
    wanted = [id_ for id_ in passed if is_chosen(id_, green.targets)]
    chance = random.Random(green.seed)  # noqa: S311 (not predictable is enough)
    beside = [id_ for id_ in green.nearby if id_ in set(passed) - set(wanted) and id_ in before and not before[id_].red]
    sampled = sorted(chance.sample(beside, min(SAMPLE, len(beside))))
    chosen: list[Subject] = []
    left_out: list[str] = []
    for function, members in group_by_function((*wanted, *sampled)):
        is_target = members[0] in wanted
        ids = tuple(id_ for id_ in members if id_ in wanted) or members
        if not is_target and view.kept.get(view.file_of(function)) in green.changed:
            continue  # an example in a docstring, whose file is another one on the original code
        subject = _subject(view, function, ids, [before.get(id_) for id_ in ids], is_target=is_target)
        if isinstance(subject, Subject):
            chosen.append(subject._replace(alterations=_drawn(subject, chance)))
        elif is_target:
            left_out.append(subject)
    return Subjects(tuple(chosen), tuple(left_out), len(wanted))


def is_chosen(id_: str, targets: Sequence[str]) -> bool:
    return any(id_ == target or id_.startswith((f"{target}::", f"{target}.", f"{target} > ")) for target in targets)


def group_by_function(ids: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    groups: dict[str, list[str]] = {}
    for id_ in dict.fromkeys(ids):
        language = language_of_cases(re.split("::| > ", id_)[0]) or Language
        groups.setdefault(language.case_mark.sub("", id_), []).append(id_)
    yield from ((function, tuple(members)) for function, members in groups.items())


def _subject(
    view: TreeView, function: str, ids: tuple[str, ...], before: Sequence[Case | None], *, is_target: bool
) -> Subject | str:
    shown = find_test_file(view, function)
    alterer = alterer_for(shown) if shown else None
    text = view.read(shown) if shown else None
    if alterer is None or text is None:
        return f"{function}: it is not known in which file it is written" if not shown else f"{shown}: not altered"
    name = name_in_file(function, shown)
    if inherited := _defined_in(view, shown, name):
        shown, text = inherited, view.read(inherited) or b""
    lines = [(line, case) for case in before if case is not None and (line := failed_line(case, shown))]
    failed, seen = lines[0] if lines else (None, None)
    made = alterer.alterations(shown, text, name, failed, seen)
    if not made:
        return f"{function}: it has no assertion that can be altered"
    return Subject(function, ids, view.kept[shown], name, text, failed, is_target, alterer, tuple(made))


def find_test_file(view: TreeView, function: str) -> str:
    """Find a test's file. If the report names none, it is the only test file with a test of this class and name.

    Empty if there is none.
    """
    if shown := view.file_of(function):
        return shown
    owner, _, name = function.rpartition("::")
    having = [
        path
        for path in view.kept
        if (language := _language_of_tests(path)) and _contains(view, path, language.definitions(owner, name))
    ]
    return having[0] if len(having) == 1 else ""


def _defined_in(view: TreeView, shown: str, name: str) -> str:
    """Find the only other test file that defines a test which a class of this file inherits; empty if there is none."""
    dotted, language = name.replace("::", "."), language_of_file(shown)
    definitions = language.definitions("", dotted.rpartition(".")[2]) if language else ()
    if "." not in dotted or not definitions or _contains(view, shown, definitions):
        return ""
    others = (path for path in view.kept if _language_of_tests(path) is language)
    having = [path for path in others if _contains(view, path, definitions)]
    return having[0] if len(having) == 1 else ""


def _language_of_tests(path: str) -> Language | None:
    return language_of_file(path) if is_test_path(path) else None


def _contains(view: TreeView, path: str, definitions: Sequence[bytes]) -> bool:
    text = view.read(path) or b""
    return bool(definitions) and all(definition in text for definition in definitions)


def name_in_file(function: str, shown: str) -> str:
    """Return the part of a test's ID after its file: `TestA::test_b` or `TestA.test_b`."""
    name = function.removeprefix(shown).removeprefix("::").removeprefix(" > ")
    return name if name != function else function.removeprefix(shown.rpartition(".")[0].replace("/", ".") + ".")


def failed_line(case: Case, shown: str) -> int | None:
    """Return the innermost line of the test's own file in the runner's report of a failure; None if there is none."""
    if not case.red:
        return None
    lines = re.findall(rf"{re.escape(shown)}\"?(?::|, line )(\d+)", case.detail)
    if not lines:
        return None
    language = language_of_file(shown) or Language
    return int(lines[0] if language.deepest_first else lines[-1])


def _drawn(subject: Subject, chance: random.Random) -> tuple[Alteration, ...]:
    """Draw alterations: first those of the failed line, its expectations first; then others in random order."""
    at_failure = [alteration for alteration in subject.alterations if alteration.line == subject.failed]
    rest = [alteration for alteration in subject.alterations if alteration.line != subject.failed]
    at_failure.sort(key=lambda alteration: _FIRST.index(alteration.kind))
    chance.shuffle(rest)
    rest.sort(key=lambda alteration: alteration.kind is AlterationKind.other)
    return tuple((*at_failure, *rest)[:MOST])


_FIRST = (
    AlterationKind.former,
    AlterationKind.literal,
    AlterationKind.other,
    AlterationKind.inserted,
    AlterationKind.negated,
    AlterationKind.unrelated,
)
