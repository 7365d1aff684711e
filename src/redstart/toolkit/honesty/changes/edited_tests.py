"""The source of a test before and after a change: whether it changed, moved or asserts less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from functools import cached_property

from redstart.toolkit.honesty.controls.subjects import group_by_function, name_in_file
from redstart.toolkit.languages.registry import find_file_language
from redstart.toolkit.suites.suite_directory import TreeView

_SHARE = 0.5
"""The share of a removed test's lines that must be in other tests, so that they replace it."""
_SHORTEST = 4
"""Characters of a line that says something."""


class EditedTests:
    """The tests of both sides as text. `changed` are the changed paths, as the runner shows them."""

    def __init__(self, before: TreeView, after: TreeView, changed: Collection[str]) -> None:
        self._before, self._after, self._changed = before, after, frozenset(changed)
        self._old_texts, self._new_texts = _TestTexts(before), _TestTexts(after)

    def is_edited(self, id_: str) -> bool:
        """Return whether the text of the test differs, or its whole file if the language has no parser for it."""
        if not self.is_in_changed_file(id_):
            return False
        old, new = self._old_texts.get(id_), self._new_texts.get(id_)
        return old != new or not old

    def is_in_changed_file(self, id_: str) -> bool:
        return self.find_file(id_) in self._changed

    def find_file(self, id_: str) -> str:
        """Return the file of the test as the runner shows it; empty if it is not known."""
        return self._after.find_file(id_) or self._before.find_file(id_)

    def is_still_written(self, id_: str) -> bool:
        """Return whether the new side still contains exactly this test."""
        old = self._old_texts.get(id_)
        return bool(old) and old == self._new_texts.get(id_)

    def explain_weaker(self, id_: str) -> str:
        """Return how the new form of the test asserts less than the old one; empty if it does not, or if unknown."""
        if not self.is_edited(id_):
            return ""
        language = find_file_language(self.find_file(id_))
        old, new = self._old_texts.get(id_), self._new_texts.get(id_)
        return language.explain_weaker_test(old, new) if language and old and new else ""

    def is_replaced(self, id_: str) -> bool:
        """Return whether other tests replace this one, which is gone: they have its name, or most of its lines."""
        if self._count_definitions(self._after, id_) >= max(self._count_definitions(self._before, id_), 1):
            return True
        old = [line for line in self._old_texts.get(id_).splitlines() if len(line.strip()) >= _SHORTEST]
        found = sum(line.strip().encode() in self._added_lines for line in old)
        return bool(old) and found >= _SHARE * len(old)

    def is_moved(self, id_: str) -> bool:
        """Return whether this test, which the old side does not have, was moved: only its file or class is new."""
        text = self._new_texts.get(id_)
        lines = [line for line in _strip_lines(text.encode()) if len(line) >= _SHORTEST]
        return bool(lines) and all(line in self._removed_lines for line in lines)

    def _count_definitions(self, view: TreeView, id_: str) -> int:
        """Count the definitions of tests of this name in the changed files."""
        language = find_file_language(self.find_file(id_))
        definitions = language.list_definition_texts("", _get_function_name(id_)) if language else ()
        return sum((view.read(path) or b"").count(text) for path in self._changed for text in definitions)

    @cached_property
    def _added_lines(self) -> frozenset[bytes]:
        """The lines, without their indentation, that the changed test files have gained."""
        return self._list_gained_lines(self._before, self._after)

    @cached_property
    def _removed_lines(self) -> frozenset[bytes]:
        return self._list_gained_lines(self._after, self._before)

    def _list_gained_lines(self, before: TreeView, after: TreeView) -> frozenset[bytes]:
        gained: Counter[bytes] = Counter()
        for path in self._changed:
            gained += Counter(_strip_lines(after.read(path) or b"")) - Counter(_strip_lines(before.read(path) or b""))
        return frozenset(gained)


class _TestTexts:
    """The source of each test function of one side. Each file is parsed once."""

    def __init__(self, view: TreeView) -> None:
        self._view = view
        self._by_file: dict[str, dict[str, str]] = {}

    def get(self, id_: str) -> str:
        """Return the source of a test's function; empty if the test or a parser for it does not exist."""
        path = self._view.find_file(id_)
        if path not in self._by_file:
            self._by_file[path] = self._parse(path)
        return self._by_file[path].get(name_in_file(get_function(id_), path).replace("::", "."), "")

    def _parse(self, path: str) -> dict[str, str]:
        data, language = self._view.read(path) if path else None, find_file_language(path)
        if data is None or language is None:
            return {}
        lines = data.decode(errors="replace").splitlines()
        texts: dict[str, str] = {}
        for symbol in language.outline(lines) or ():
            texts.setdefault(symbol.name, "\n".join(lines[symbol.start - 1 : symbol.end]))
        return texts


def count_cases(ids: Collection[str]) -> Counter[str]:
    """Count the cases of each test function."""
    return Counter({function: len(members) for function, members in group_by_function(tuple(ids))})


def get_function(id_: str) -> str:
    """Return the ID of the test function without its parameters."""
    return next(function for function, _ in group_by_function((id_,)))


def _get_function_name(id_: str) -> str:
    return get_function(id_).replace("::", ".").rpartition(".")[2]


def _strip_lines(text: bytes) -> list[bytes]:
    return [line.strip() for line in text.splitlines()]
