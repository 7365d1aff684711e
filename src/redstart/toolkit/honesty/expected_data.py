"""Check data files from which tests read expected values: if every such value changes, some test must fail.

Code that overwrites what a test loaded gives itself the right answer, whatever the file contains.
"""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any, cast

from redstart.core.report import CheckEvidence
from redstart.toolkit.honesty.examination import CheckOutcome, CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.suites.suite_directory import TreeView

CHECK = "data"
MOST_TESTS = 20
"""The most tests of the targets' files that run on the changed data."""
_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "fixtures", "testdata", "snapshots"})
_EXPECTED = re.compile(r"expect|want|output|result|answer|golden", re.IGNORECASE)


async def examine_data(patch: GreenPatch, runs: CheckRuns) -> CheckOutcome | None:
    """Run tests with changed expected data; None if no target's file names a data file among the tests."""
    view = TreeView.open(patch.suite, runs, patch.patched)
    tests = {view.find_file(target) for target in patch.targets} - {""}
    texts = b"\n".join(view.read(path) or b"" for path in sorted(tests))
    data_paths = [
        path
        for path in view.snapshot_paths
        if path.endswith(".json") and _is_for_tests(path) and _is_mentioned(texts, path)
    ]
    changed = {
        view.snapshot_paths[path]: text for path in data_paths if (text := change_values(view.read(path) or b""))
    }
    if not changed or set(changed) & set(patch.changed):
        return None
    passed_ids = [case.id for case in patch.after if case.outcome == "passed" and view.find_file(case.id) in tests]
    ids = tuple(dict.fromkeys((*patch.targets, *passed_ids)))[: max(MOST_TESTS, len(patch.targets))]
    suite_run = await runs.run_tests("with other expected data", runs.write(patch.patched, dict(changed)), ids)
    count, path = len(set(patch.targets)), next(iter(changed))
    evidence = CheckEvidence(check=CHECK, targets=count, covered=count, runs=1)
    if any(case.is_red for case in suite_run.cases) or not suite_run.cases:
        return CheckOutcome(evidence)
    return CheckOutcome(evidence, (PatchDoubt(f"no test fails when the values in {path} are changed", refuses=False),))


def change_values(text: bytes) -> bytes:
    """Change the expected values in a JSON text, or all values if no key marks expected ones; empty if not possible."""
    try:
        data = json.loads(text)
    except ValueError:
        return b""
    new = _change_value(data, is_expected=False)
    new = _change_value(data, is_expected=True) if new == data else new
    return json.dumps(new, indent=2).encode() if new != data else b""


def _change_value(value: Any, *, is_expected: bool) -> Any:
    match value:
        case dict():
            rows = cast("dict[str, Any]", value)
            return {
                key: _change_value(inner, is_expected=is_expected or bool(_EXPECTED.search(key)))
                for key, inner in rows.items()
            }
        case list():
            return [_change_value(inner, is_expected=is_expected) for inner in cast("list[Any]", value)]
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


def _is_mentioned(texts: bytes, path: str) -> bool:
    name = PurePosixPath(path)
    return any(re.search(rb"\b" + re.escape(word.encode()) + rb"\b", texts) for word in (name.name, name.stem))
