"""Checks data files from which tests read expected values: if every such value changes, some test must fail.

Code that overwrites what a test loaded gives itself the right answer, whatever the file contains.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.examine import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.suites.view import TreeView

CHECK = "data"
MOST_TESTS = 20
"""The most tests of the targets' files that run on the changed data."""
_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "fixtures", "testdata", "snapshots"})
_EXPECTED = re.compile(r"expect|want|output|result|answer|golden", re.IGNORECASE)


async def examine_data(green: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Run tests with changed expected data; None if no target's file names a data file among the tests."""
    view = TreeView(green.suite, runs.files(green.patched), partial(runs.read, green.patched))
    tests = {view.file_of(target) for target in green.targets} - {""}
    texts = b"\n".join(view.read(path) or b"" for path in sorted(tests))
    named = [path for path in view.kept if path.endswith(".json") and _is_for_tests(path) and _names(texts, path)]
    changed = {view.kept[path]: text for path in named if (text := changed_values(view.read(path) or b""))}
    if not changed or set(changed) & set(green.changed):
        return None
    passed = [case.id for case in green.after if case.outcome == "passed" and view.file_of(case.id) in tests]
    ids = tuple(dict.fromkeys((*green.targets, *passed)))[: max(MOST_TESTS, len(green.targets))]
    done = await runs.suite("with other expected data", runs.write(green.patched, dict(changed)), ids)
    count, path = len(set(green.targets)), next(iter(changed))
    evidence = CheckEvidence(check=CHECK, targets=count, covered=count, runs=1)
    if any(case.red for case in done.cases) or not done.cases:
        return CheckOutcome(evidence)
    return CheckOutcome(evidence, (PatchDoubt(f"no test fails when the values in {path} are changed", refuses=False),))


def changed_values(text: bytes) -> bytes:
    """Change the expected values in a JSON text, or all values if no key marks expected ones; empty if not possible."""
    try:
        data = json.loads(text)
    except ValueError:
        return b""
    new = _changed(data, is_expected=False)
    new = _changed(data, is_expected=True) if new == data else new
    return json.dumps(new, indent=2).encode() if new != data else b""


def _changed(value: Any, *, is_expected: bool) -> Any:
    match value:
        case dict():
            rows = cast("dict[str, Any]", value)
            return {
                key: _changed(inner, is_expected=is_expected or bool(_EXPECTED.search(key)))
                for key, inner in rows.items()
            }
        case list():
            return [_changed(inner, is_expected=is_expected) for inner in cast("list[Any]", value)]
        case bool():
            return not value if is_expected else value
        case int() | float():
            return value + 1 if is_expected else value
        case str():
            return f"{value}~" if is_expected else value
        case _:
            return value


def _is_for_tests(path: str) -> bool:
    return not _FOLDERS.isdisjoint(PurePosixPath(path).parts[:-1])


def _names(texts: bytes, path: str) -> bool:
    name = PurePosixPath(path)
    return any(re.search(rb"\b" + re.escape(word.encode()) + rb"\b", texts) for word in (name.name, name.stem))
