"""The tripwires for JavaScript and TypeScript."""

from __future__ import annotations

import re
from collections.abc import Iterator

from redstart.toolkit.honesty.tripwires.protocol import Change, RuleMark, Tripwires
from redstart.toolkit.languages.node.trees import is_script
from redstart.toolkit.languages.node.tripwires import answers, dynamic_code, support

_UNREADABLE = (".node", ".wasm")
_SKIPS = re.compile(
    r"\b(?:describe|it|test|context|suite)\.(?:only|skip|todo|failing)\b|\b(?:xit|xdescribe|xtest|fit|fdescribe)\s*\("
)


class NodeTripwires(Tripwires):
    def __init__(self, change: Change) -> None:
        self._tests = change.tests
        # Read the tests only if a script changed. Data files count if the tests are scripts.
        is_about_scripts = any(is_script(path) for path in (*change.after, *change.tests))
        self._test_literals = answers.read_script_tests(change.tests if is_about_scripts else {})
        had = (answers.collect_literals(text, path) for path, text in change.before.items() if text is not None)
        self._known_literals = frozenset[str]().union(*had) if is_about_scripts else frozenset[str]()

    def find_marks(self, path: str, text: bytes) -> Iterator[RuleMark]:
        if not is_script(path):
            yield from answers.find_data_marks(path, text, self._test_literals, self._known_literals)
            return
        yield from _find_skips(text)
        yield from dynamic_code.find_marks(path, text)
        yield from answers.find_marks(path, text, self._test_literals, self._known_literals)

    def find_faults(self, path: str) -> Iterator[RuleMark]:
        if is_script(path) and (reason := support.explain_test_role(path, self._tests)):
            yield RuleMark("test_support", "", 1, reason)

    def find_new_file_faults(self, path: str) -> Iterator[RuleMark]:
        if path.endswith(_UNREADABLE):
            yield RuleMark("unreadable", "", 1, "It is loaded by the interpreter and cannot be read as source.")


def _find_skips(text: bytes) -> Iterator[RuleMark]:
    """Yield a mark for each line that disables a test."""
    for number, line in enumerate(text.decode("utf-8", "replace").splitlines(), 1):
        if (match := _SKIPS.search(line)) is not None:
            yield RuleMark("skip", line.strip(), number, f"`{match[0].strip()}` keeps a test from telling.")
