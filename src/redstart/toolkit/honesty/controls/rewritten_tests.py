"""Rewrite the targets' test files with other line numbers and other local names, for the verdict's own runs.

Code that recognizes the tests by their text cannot tell an altered test from a rewritten one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from redstart.core.change import Snapshot
from redstart.core.run import Suite
from redstart.toolkit.honesty.controls.subjects import get_alterer
from redstart.toolkit.honesty.examination import CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.suites.suite_directory import TreeView

SAMPLE = 10
"""The most passing tests of the same files that show whether rewriting changes the meaning of tests here."""


def rewrite(runs: CheckRuns, suite: Suite, tree: Snapshot, targets: Iterable[str], seed: str) -> Snapshot:
    """Rewrite the targets' test files in the tree, as far as possible."""
    view = TreeView.open(suite, runs, tree)
    files: dict[str, bytes | None] = {}
    for shown_path in sorted({view.find_file(target) for target in targets} - {""}):
        alterer, text = get_alterer(shown_path), view.read(shown_path)
        if alterer is not None and text is not None:
            files[view.snapshot_paths[shown_path]] = alterer.rewrite_tests(shown_path, text, seed)
    changed = {path: text for path, text in files.items() if text != runs.read(tree, path)}
    return runs.write(tree, changed) if changed else tree


async def explain_text_dependence(patch: GreenPatch, runs: CheckRuns, failed: Sequence[str]) -> PatchDoubt | None:
    """Explain why targets fail with rewritten tests and pass with the original ones.

    None if passing tests of the same files fail on the original code too once they are rewritten.
    """
    view = TreeView.open(patch.suite, runs, patch.base)
    files = {view.find_file(target) for target in failed}
    passing = [case.id for case in patch.before if case.outcome == "passed" and view.find_file(case.id) in files][
        :SAMPLE
    ]
    if not passing:
        return PatchDoubt(f"{_get_short_name(failed[0])} fails when its test is rewritten to mean the same", False)
    base = rewrite(runs, patch.suite, patch.base, failed, patch.seed)
    suite_run = await runs.run_tests("rewritten tests without the patch", base, passing)
    if any(case.is_red for case in suite_run.cases) or len(suite_run.cases) < len(passing):
        return None
    return PatchDoubt(f"{_get_short_name(failed[0])} passes only while the text of its test is as it was", True)


def _get_short_name(id_: str) -> str:
    return id_.replace(" > ", "::").split("::")[-1]
