"""Rewrites the targets' test files with other line numbers and other local names, for the verdict's own runs.

Code that recognizes the tests by their text cannot tell an altered test from a rewritten one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from redstart.core.change import Snapshot
from redstart.core.run import Suite
from redstart.toolkit.honesty.controls.subjects import alterer_for
from redstart.toolkit.honesty.examine import CheckRuns, GreenPatch, PatchDoubt
from redstart.toolkit.suites.view import TreeView

SAMPLE = 10
"""The most passing tests of the same files that show whether rewriting changes the meaning of tests here."""


def rewrite(runs: CheckRuns, suite: Suite, tree: Snapshot, targets: Iterable[str], seed: str) -> Snapshot:
    """Rewrite the targets' test files in the tree, as far as possible."""
    view = TreeView(suite, runs.files(tree), partial(runs.read, tree))
    files: dict[str, bytes | None] = {}
    for shown in sorted({view.file_of(target) for target in targets} - {""}):
        alterer, text = alterer_for(shown), view.read(shown)
        if alterer is not None and text is not None:
            files[view.kept[shown]] = alterer.harmless(shown, text, seed)
    changed = {path: text for path, text in files.items() if text != runs.read(tree, path)}
    return runs.write(tree, changed) if changed else tree


async def doubt_text(green: GreenPatch, runs: CheckRuns, failed: Sequence[str]) -> PatchDoubt | None:
    """Explain why targets fail with rewritten tests and pass with the original ones.

    None if passing tests of the same files fail on the original code too once they are rewritten.
    """
    view = TreeView(green.suite, runs.files(green.base), partial(runs.read, green.base))
    files = {view.file_of(target) for target in failed}
    passing = [case.id for case in green.before if case.outcome == "passed" and view.file_of(case.id) in files][:SAMPLE]
    if not passing:
        return PatchDoubt(f"{_short(failed[0])} fails when its test is rewritten to mean the same", False)
    base = rewrite(runs, green.suite, green.base, failed, green.seed)
    done = await runs.suite("rewritten tests without the patch", base, passing)
    if any(case.red for case in done.cases) or len(done.cases) < len(passing):
        return None
    return PatchDoubt(f"{_short(failed[0])} passes only while the text of its test is as it was", True)


def _short(id_: str) -> str:
    return id_.replace(" > ", "::").split("::")[-1]
